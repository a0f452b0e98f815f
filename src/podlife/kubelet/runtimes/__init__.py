"""Container runtimes: `process` (nothing to install), `containerd`, `sim` (simulated), `custom` (your own compute).

They implement `podlife.kubelet.runtime`.
"""
