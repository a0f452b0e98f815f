"""What a process has cost: read from the kernel while it lives, the same way for every program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time, user and system together, and the most memory that was ever resident."""

    cpu_seconds: float
    peak_mb: float


def cost_of(pid: int) -> Cost | None:
    """Nothing when it has ended."""
    try:
        # The name of the program may hold spaces; it ends at the last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        peak = _status(pid, "VmHWM:")
    except (OSError, LookupError):
        return None
    return Cost((int(fields[11]) + int(fields[12])) / _TICKS, peak / 1024)


def cpu_seconds(*pids: int) -> float:
    """Of several processes together."""
    return sum(cost.cpu_seconds for pid in pids if (cost := cost_of(pid)) is not None)


def most_per_second(server_seconds: float, count: int) -> str:
    """What the servers' own work allows on this machine, however little their client costs."""
    cores = len(os.sched_getaffinity(0))
    each = server_seconds / count
    return (
        f"kube-apiserver and etcd took {each * 1e3:.2f} ms of CPU for each: "
        f"{cores} cores can do {cores / each:.0f}/s at most, with a client that costs nothing"
    )


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS:") * 1024


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise LookupError(name)
