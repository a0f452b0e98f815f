"""The `process` runtime: containers as plain processes of this machine."""

from podlife.kubelet.runtimes.process.launch import ProcessSettings
from podlife.kubelet.runtimes.process.runtime import ProcessRuntime

__all__ = ["ProcessRuntime", "ProcessSettings"]
