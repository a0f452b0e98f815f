"""The machine of a node: this one, or that of a simulated node.

`facts` do not change while the kubelet runs; `usage` is what is free right now, at the cost of two small reads.
`HostMachine` reads /proc, /sys and /etc. Unreadable values are left empty, except for required ones: memory and the
data folder.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from podlife.errors import ConfigError

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_PAGES = "hugepages-"


@dataclass(frozen=True, slots=True)
class MachineFacts:
    cores: int
    memory_bytes: int
    storage_bytes: int
    # Page size and number of pages.
    hugepages: tuple[tuple[int, int], ...] = ()
    swap_bytes: int = 0
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_image: str = ""
    # As Kubernetes names it: amd64, arm64.
    architecture: str = "amd64"
    operating_system: str = "linux"


@dataclass(frozen=True, slots=True)
class MachineUsage:
    """Free resources. None means unknown, and never causes pressure."""

    memory_free_bytes: int | None = None
    storage_free_percent: float | None = None
    inodes_free_percent: float | None = None
    pids_free_percent: float | None = None


class Machine(Protocol):
    def facts(self) -> MachineFacts:
        """Raises `ConfigError` if no node can run on this machine."""
        ...

    def usage(self) -> MachineUsage: ...


class FixedMachine:
    """A machine with fixed facts and usage."""

    def __init__(self, facts: MachineFacts, usage: MachineUsage | None = None) -> None:
        self._facts = facts
        self._usage = usage or MachineUsage()

    def facts(self) -> MachineFacts:
        return self._facts

    def usage(self) -> MachineUsage:
        return self._usage


class HostMachine:
    """`data` is a folder on the file system that pods write to; `root` is where the machine's root is mounted, for a
    kubelet in a container."""

    def __init__(self, data: Path, *, root: Path = Path("/")) -> None:
        self._data = data
        self._root = root
        self._facts: MachineFacts | None = None

    def facts(self) -> MachineFacts:
        if self._facts is None:
            self._facts = self._read_facts()
        return self._facts

    def usage(self) -> MachineUsage:
        memory = self._memory()
        try:
            storage = os.statvfs(self._data)
        except OSError:
            return MachineUsage(memory_free_bytes=memory.get("MemAvailable"))
        return MachineUsage(
            memory_free_bytes=memory.get("MemAvailable"),
            storage_free_percent=_percent(storage.f_bavail, storage.f_blocks),
            inodes_free_percent=_percent(storage.f_favail, storage.f_files),
            pids_free_percent=self._pids_free(),
        )

    def _read_facts(self) -> MachineFacts:
        memory = self._memory()
        if "MemTotal" not in memory:
            raise ConfigError(f"{self._root / 'proc/meminfo'} has no MemTotal")
        try:
            storage = os.statvfs(self._data)
        except OSError as error:
            raise ConfigError(f"cannot access the folder {self._data}: {error.strerror}") from None
        machine = platform.machine()
        return MachineFacts(
            cores=os.cpu_count() or 1,
            memory_bytes=memory["MemTotal"],
            storage_bytes=storage.f_blocks * storage.f_frsize,
            hugepages=self._hugepages(),
            swap_bytes=memory.get("SwapTotal", 0),
            machine_id=self._line("etc/machine-id") or self._line("var/lib/dbus/machine-id"),
            system_uuid=self._line("sys/class/dmi/id/product_uuid"),
            boot_id=self._line("proc/sys/kernel/random/boot_id"),
            kernel_version=platform.release(),
            os_image=self._os_image(),
            architecture=_ARCHITECTURES.get(machine, machine),
            operating_system=platform.system().lower(),
        )

    def _line(self, path: str) -> str:
        try:
            return (self._root / path).read_text(errors="replace").strip()
        except OSError:
            return ""

    def _memory(self) -> dict[str, int]:
        """Bytes by name."""
        amounts: dict[str, int] = {}
        for line in self._line("proc/meminfo").splitlines():
            name, _, rest = line.partition(":")
            number, _, unit = rest.strip().partition(" ")
            if unit == "kB" and number.isdecimal():
                amounts[name] = int(number) * 1024
        return amounts

    def _hugepages(self) -> tuple[tuple[int, int], ...]:
        folder = self._root / "sys/kernel/mm/hugepages"
        try:
            names = sorted(each.name for each in folder.iterdir() if each.name.startswith(_PAGES))
        except OSError:
            return ()
        sizes = [(name, name.removeprefix(_PAGES).removesuffix("kB")) for name in names]
        return tuple(
            (int(size) * 1024, int(self._line(f"sys/kernel/mm/hugepages/{name}/nr_hugepages") or 0))
            for name, size in sizes
            if size.isdecimal()
        )

    def _os_image(self) -> str:
        for line in (self._line("etc/os-release") or self._line("usr/lib/os-release")).splitlines():
            key, _, value = line.partition("=")
            if key == "PRETTY_NAME":
                return value.strip("\"'")
        return "Unknown"

    def _pids_free(self) -> float | None:
        most = self._line("proc/sys/kernel/pid_max")
        # The fourth field of loadavg has the numbers of running and of all threads.
        fields = self._line("proc/loadavg").split()
        now = fields[3].rpartition("/")[2] if len(fields) > 3 else ""
        if not most.isdecimal() or not now.isdecimal():
            return None
        return _percent(int(most) - int(now), int(most))


def _percent(part: int, whole: int) -> float | None:
    # File systems without an inode table report 0 inodes.
    return 100.0 * part / whole if whole else None
