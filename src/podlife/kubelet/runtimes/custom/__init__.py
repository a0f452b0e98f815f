"""A runtime on top of your own compute: implement the six methods of `Compute`, and `CustomRuntime` does the rest.

    async with CustomRuntime(MyCompute(), Path("/var/lib/my-node"), SystemClock()) as runtime: ...

It keeps what the kubelet needs and your compute does not know: sandboxes, attempts, grace periods, events.
`docs/own-compute.md` has a complete example.
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
