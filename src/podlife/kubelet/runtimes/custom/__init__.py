"""A runtime out of compute of your own: write the six methods of `Compute`, and `CustomRuntime` makes a runtime of it.

    async with CustomRuntime(MyCompute(), Path("/var/lib/my-node"), SystemClock()) as runtime: ...

What the kubelet needs and your compute does not know (sandboxes, attempts, grace periods, who was told what) is kept
here. `docs/own-compute.md` shows a whole one.
"""

from podlife.kubelet.runtime import ContainerConfig, ExecResult, SandboxConfig
from podlife.kubelet.runtimes.custom.compute import Compute, ComputeError, End, Resuming, Work
from podlife.kubelet.runtimes.custom.runtime import CustomRuntime

__all__ = [
    "Compute",
    "ComputeError",
    "ContainerConfig",
    "CustomRuntime",
    "End",
    "ExecResult",
    "Resuming",
    "SandboxConfig",
    "Work",
]
