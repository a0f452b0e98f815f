"""The kubelet: runs the pods of a node, and ends them.

`kubelet.Kubelet` puts everything together. `sync_loop` turns what happens into updates of `podworkers`, which run the
steps of `pod_syncer` over `kuberuntime`, `volumemanager`, `prober` and `status`; `pleg` observes the runtime.
`runtimes` are the ways to run containers, behind the seam in `runtime`. Nothing is imported here: a caller pays for the
part that it uses.
"""
