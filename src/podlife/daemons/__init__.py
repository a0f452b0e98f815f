"""The long-running parts of podlife, each a module with plain settings and an `async def run(settings)`.

    apiserver     the API server
    controllers   Kubernetes' own controllers, chosen from `catalog`
    gc            the pod garbage collector
    node          the kubelet
    join          the TLS bootstrap of a node, once
    simulation    hollow nodes and pods

Cancel `run` to stop a daemon, or pass a `Shutdown` (see `event_loop`) that ends it in order. A daemon raises
PodlifeError if it cannot work; it neither prints nor handles signals. Import the modules one by one: a daemon does not
load what only another one needs.
"""
