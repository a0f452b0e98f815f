"""The runtime `containerd`: containers through a daemon that speaks CRI v1; needs `podlife[containerd]`."""

from podlife.kubelet.runtimes.containerd.client import ContainerdSettings
from podlife.kubelet.runtimes.containerd.runtime import ContainerdRuntime

__all__ = ["ContainerdRuntime", "ContainerdSettings"]
