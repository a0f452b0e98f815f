"""The machine under a node, as the node tells of it: a seam, since a simulated node has whatever it is said to have.

`facts` are what does not change while the kubelet runs; `usage` is what is free right now, and costs two small reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class MachineFacts:
    cores: int
    memory_bytes: int
    storage_bytes: int
    # Size of a page, and how many of them there are.
    hugepages: tuple[tuple[int, int], ...] = ()
    swap_bytes: int = 0
    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""
    kernel_version: str = ""
    os_image: str = ""
    # In Kubernetes' words: amd64, arm64.
    architecture: str = "amd64"
    operating_system: str = "linux"


@dataclass(frozen=True, slots=True)
class MachineUsage:
    """What is free. None is not known, and no reason for concern."""

    memory_free_bytes: int | None = None
    storage_free_percent: float | None = None
    inodes_free_percent: float | None = None
    pids_free_percent: float | None = None


class Machine(Protocol):
    def facts(self) -> MachineFacts:
        """Raises `ConfigError` where this is no machine that a node can be on."""
        ...

    def usage(self) -> MachineUsage: ...


class FixedMachine:
    """A machine that is as it is said to be, and never short of anything."""

    def __init__(self, facts: MachineFacts, usage: MachineUsage | None = None) -> None:
        self._facts = facts
        self._usage = usage or MachineUsage()

    def facts(self) -> MachineFacts:
        return self._facts

    def usage(self) -> MachineUsage:
        return self._usage
