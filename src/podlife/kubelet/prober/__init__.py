"""The prober manager: runs the probes of a node's pods when they are due, and keeps their results.

`manager.ProberManager` is the `Probes` of `podlife.kubelet.interfaces`. `state` decides when a probe runs and what its
results mean; `prober` runs one, over the network with `podlife.kubelet.probe`. Nothing is imported here, so that the
enumerations in `state` cost no more than themselves.
"""
