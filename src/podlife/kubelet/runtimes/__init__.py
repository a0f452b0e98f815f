"""What runs containers: `process` (nothing to install), `sim` (nothing runs). The seam is `podlife.kubelet.runtime`."""
