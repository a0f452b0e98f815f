"""What runs containers: `process` (nothing to install), `containerd`, `sim` (nothing runs).

The seam is `podlife.kubelet.runtime`.
"""
