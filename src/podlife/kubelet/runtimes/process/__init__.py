"""The runtime `process`: containers as plain processes of this machine."""

from podlife.kubelet.runtimes.process.runtime import ProcessRuntime
from podlife.kubelet.runtimes.process.settings import ProcessSettings

__all__ = ["ProcessRuntime", "ProcessSettings"]
