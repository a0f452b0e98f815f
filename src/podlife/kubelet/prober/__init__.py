"""The prober manager: runs the probes of a node's pods when they are due, and stores the results.

`manager.ProberManager` implements `podlife.kubelet.interfaces.Probes`. `state` decides when a probe runs and what its
results mean; `prober` runs one probe, using `podlife.kubelet.probe`. Nothing is imported here, so that importing
`state` stays cheap.
"""
