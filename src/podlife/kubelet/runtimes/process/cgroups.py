"""Find where cgroups (v1 or v2) can be created on this node, and compute the values that enforce a container's limits.

Cgroups are created below the kubelet's own, so limits on the kubelet also apply to its pods. In v2 a cgroup with
processes cannot have children with limits; the root cgroup is tried instead. If neither is writable, `discover`
returns None and only `setrlimit` enforces limits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podlife.kubelet.runtime import ContainerConfig, Resources
from podlife.kubelet.runtimes.preconditions import check_memory_usage, is_limited_further

_CONTROLLERS = ("cpu", "memory", "pids")
_PERIOD_MICROSECONDS = 100_000
_FOLDER = "podlife"
_USAGE = ("memory.usage_in_bytes", "memory.current")


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The parent cgroup of containers, per controller; in v2 all controllers share one."""

    version: int
    parents: dict[str, Path]

    def groups(self, container_id: str, resources: Resources) -> list[dict[str, Any]]:
        """The cgroups a supervisor must create, with their values; empty for a container without resources. One with
        any has those of CPU and memory, so that they can be set while it is running."""
        wanted = _values(resources, is_v2=self.version == 2)
        is_resizable = any(wanted[each] and each in self.parents for each in ("cpu", "memory"))
        by_folder: dict[Path, dict[str, str]] = {}
        for controller, values in wanted.items():
            if controller in self.parents and (values or (is_resizable and controller != "pids")):
                by_folder.setdefault(self.parents[controller] / container_id, {}).update(values)
        return [{"path": str(path), "values": values} for path, values in by_folder.items()]

    def set(self, container_id: str, config: ContainerConfig, resources: Resources) -> None:
        """Change the values of a running container; one without cgroups has them from its next start. Blocking."""
        groups = [each for each in self.groups(container_id, resources) if Path(each["path"]).is_dir()]
        for usage in (Path(group["path"]) / each for group in groups for each in _USAGE):
            if is_limited_further(resources, config.resources) and usage.exists():
                check_memory_usage(config.name, resources, int(usage.read_text()))
        for group in groups:
            for file, value in group["values"].items():
                (Path(group["path"]) / file).write_text(value)


def discover(proc: Path = Path("/proc/self")) -> Cgroups | None:
    """Find a writable parent for cgroups and create the podlife folder in it."""
    try:
        mounts = _mounts((proc / "mountinfo").read_text())
        own = _own_groups((proc / "cgroup").read_text())
    except OSError:
        return None
    version_1 = {
        controller: parent
        for controller in _CONTROLLERS
        if controller in mounts
        and (parent := _create_v1(mounts[controller], own.get(controller, "/"))) is not None
    }
    if version_1:
        return Cgroups(1, version_1)
    if "" in mounts and (parent := _create_v2(mounts[""], own.get("", "/"))) is not None:
        return Cgroups(2, dict.fromkeys(_CONTROLLERS, parent))
    return None


def _mounts(mountinfo: str) -> dict[str, tuple[Path, str]]:
    """Per controller ("" is v2): its mount point, and the cgroup at the root of that mount."""
    found: dict[str, tuple[Path, str]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, fields_after = before.split(), after.split()
        if len(fields) < 5 or len(fields_after) < 3:
            continue
        where = (Path(fields[4]), fields[3])
        if fields_after[0] == "cgroup2":
            found[""] = where
        elif fields_after[0] == "cgroup":
            found |= {option: where for option in fields_after[2].split(",") if option in _CONTROLLERS}
    return found


def _own_groups(cgroup: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in cgroup.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _own_folder(mount: tuple[Path, str], group: str) -> Path:
    where, top = mount
    below = group.removeprefix(top.rstrip("/")).lstrip("/")
    return where / below if (where / below).is_dir() else where


def _create_v1(mount: tuple[Path, str], group: str) -> Path | None:
    folder = _own_folder(mount, group) / _FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    # It may have been created by a kubelet with more privileges.
    return folder if os.access(folder, os.W_OK) else None


def _create_v2(mount: tuple[Path, str], group: str) -> Path | None:
    enable = " ".join(f"+{controller}" for controller in _CONTROLLERS)
    for above in dict.fromkeys((_own_folder(mount, group), mount[0])):
        try:
            (above / "cgroup.subtree_control").write_text(enable)
            (above / _FOLDER).mkdir(exist_ok=True)
            (above / _FOLDER / "cgroup.subtree_control").write_text(enable)
        except OSError:
            continue
        if os.access(above / _FOLDER, os.W_OK):
            return above / _FOLDER
    return None


def _shares(millis: int) -> int:
    return min(max(millis * 1024 // 1000, 2), 262144)


def _values(resources: Resources, *, is_v2: bool) -> dict[str, dict[str, str]]:
    cpu: dict[str, str] = {}
    if (request := resources.cpu_request_millis) is not None:
        # Maps shares (2 to 262144) to weights (1 to 10000).
        weight = 1 + (_shares(request) - 2) * 9999 // 262142
        cpu |= {"cpu.weight": str(weight)} if is_v2 else {"cpu.shares": str(_shares(request))}
    if (limit := resources.cpu_limit_millis) is not None:
        # The kernel rejects quotas below one millisecond.
        quota = str(max(limit * _PERIOD_MICROSECONDS // 1000, 1000))
        period = str(_PERIOD_MICROSECONDS)
        v1 = {"cpu.cfs_period_us": period, "cpu.cfs_quota_us": quota}
        cpu |= {"cpu.max": f"{quota} {period}"} if is_v2 else v1
    memory, pids = resources.memory_limit_bytes, resources.pids_limit
    memory_file = "memory.max" if is_v2 else "memory.limit_in_bytes"
    return {
        "cpu": cpu,
        "memory": {} if memory is None else {memory_file: str(memory)},
        "pids": {} if pids is None else {"pids.max": str(pids)},
    }
