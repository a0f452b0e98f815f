"""The runtime `containerd`: containers through a daemon that speaks CRI v1; needs `podlife[containerd]`."""

from podlife.kubelet.runtimes.containerd.runtime import ContainerdRuntime
from podlife.kubelet.runtimes.containerd.settings import ContainerdSettings

__all__ = ["ContainerdRuntime", "ContainerdSettings"]
