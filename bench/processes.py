"""What a process has cost: read from the kernel while it lives, the same way for every program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cost", "cost_of", "resident_bytes"]

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


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS:") * 1024


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise LookupError(name)
