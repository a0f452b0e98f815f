"""The kubelet: runs and terminates the pods of a node.

`kubelet.Kubelet` assembles everything. `sync_loop` turns changes into updates of `podworkers`, which run the steps of
`pod_syncer` over `kuberuntime`, `volumemanager`, `prober` and `status`; `pleg` observes the runtime. `runtimes`
contains the container runtimes, behind the interface in `runtime`. Nothing is imported here, so that a caller imports
only what it uses.
"""
