"""The `containerd` runtime: containers run by a CRI v1 daemon; needs `podlife[containerd]`."""

from podlife.kubelet.runtimes.containerd.client import ContainerdSettings
from podlife.kubelet.runtimes.containerd.runtime import ContainerdRuntime

__all__ = ["ContainerdRuntime", "ContainerdSettings"]
