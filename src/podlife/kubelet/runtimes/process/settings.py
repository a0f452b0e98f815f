"""Settings of the process runtime."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """`root` is a folder for this runtime alone. Pods share the node's network, so `ips` are the node's."""

    root: Path
    ips: tuple[str, ...] = ("127.0.0.1",)
    log_max_bytes: int = 10 * 1024 * 1024
    log_max_files: int = 5
    # How long a container has when not the kubelet but the machine asks it to end.
    shutdown_grace_seconds: float = 10.0
    use_cgroups: bool = True
