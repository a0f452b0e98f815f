"""The node agent: what runs pods on a node, and ends them.

`agent` puts everything together and is what most want; `pods` is its core, `podworkers` decides what is done for a pod
and when, `runtimes` are the ways to run one. Each is imported by its own name: who brings compute of their own needs no
more than the part they use.
"""
