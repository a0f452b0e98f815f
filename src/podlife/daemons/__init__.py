"""The long-running parts of podlife, each a module with plain settings and an `async def run(settings)`.

    apiserver     the API server
    controllers   Kubernetes' own controllers, chosen from `catalog`
    gc            the pod garbage collector
    node          the node agent
    join          the TLS bootstrap of a node, once
    simulation    hollow nodes and pods

Cancel `run` to stop a daemon, or pass a `Shutdown` (see `event_loop`) that ends it in order. A daemon raises
PodlifeError when it cannot work; it prints nothing and handles no signals by itself. Import the modules one by one:
a daemon does not load what only another one needs.
"""
