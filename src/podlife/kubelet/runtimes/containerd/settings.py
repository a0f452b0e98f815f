"""How the runtime `containerd` is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ContainerdSettings:
    """`root` holds what containerd does not keep: the files of termination messages. It also tells whose a pod is, so
    that several kubelets, or a kubelet, may use one daemon. `cgroup_parent` is in the words of the daemon's driver."""

    root: Path
    socket: Path = Path("/run/containerd/containerd.sock")
    cgroup_parent: str = ""
    runtime_handler: str = ""
    # How often everything is listed: where nobody tells what changed, and where somebody does.
    relist_seconds: float = 1.0
    relist_when_told_seconds: float = 10.0

    @property
    def termination_folder(self) -> Path:
        return self.root / "termination"
