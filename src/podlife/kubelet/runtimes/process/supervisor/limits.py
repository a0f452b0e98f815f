"""A container's cgroups: created before it starts; checked for OOM kills and removed after it has exited.

The kubelet decides on cgroups and values. If the kernel rejects them, the container runs with resource limits instead.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from typing import Any

_REMOVE_TRIES = 20


def apply(launch: dict[str, Any]) -> None:
    """Create the cgroups and join them; fall back to resource limits."""
    try:
        for group in launch["cgroups"]:
            os.makedirs(group["path"], 0o755, exist_ok=True)
            for name, value in group["values"].items():
                _write(os.path.join(group["path"], name), value)
    except OSError:
        remove(launch)
    join(launch)


def join(launch: dict[str, Any]) -> None:
    """Move this process into the container's cgroups, or apply the resource limits instead."""
    try:
        for group in launch["cgroups"]:
            _write(os.path.join(group["path"], "cgroup.procs"), "0")
        is_limited = bool(launch["cgroups"])
    except OSError:
        is_limited = False
    if not is_limited:
        for name, value in launch["rlimits_without_cgroups"].items():
            resource.setrlimit(getattr(resource, name), (value, value))


def was_out_of_memory(launch: dict[str, Any]) -> bool:
    for group in launch["cgroups"]:
        for name in ("memory.events", "memory.oom_control"):
            try:
                with open(os.path.join(group["path"], name), encoding="ascii") as counters:
                    if any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in counters):
                        return True
            except OSError:
                continue
    return False


def kill_members(launch: dict[str, Any]) -> None:
    """Kill atomically where the kernel supports it, so that no member can escape by forking."""
    for group in launch["cgroups"]:
        with contextlib.suppress(OSError):
            _write(os.path.join(group["path"], "cgroup.kill"), "1")


def remove(launch: dict[str, Any]) -> None:
    for group in launch["cgroups"]:
        for _ in range(_REMOVE_TRIES):
            try:
                os.rmdir(group["path"])
            except FileNotFoundError:
                break
            except OSError:
                # A cgroup stays busy briefly after its last process was reaped.
                time.sleep(0.005)
            else:
                break


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)
