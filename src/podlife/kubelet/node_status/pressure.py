"""When a node is short of something: below a threshold at once, and for a while after it is above it again. Pure; what
is done about it (which pods have to go) is not decided here."""

from __future__ import annotations

import math

from podlife.kubelet.node_status.conditions import Pressure
from podlife.kubelet.node_status.machine import MachineUsage
from podlife.kubelet.node_status.settings import Thresholds


class PressureGauge:
    """`hold_seconds` is for how long a shortage that is over is still told of."""

    def __init__(self, thresholds: Thresholds, *, hold_seconds: float) -> None:
        self._thresholds = thresholds
        self._hold_seconds = hold_seconds
        self._last_short: dict[str, float] = {}

    def read(self, usage: MachineUsage, seconds: float) -> Pressure:
        """What the node is short of at this moment of the loop's time."""
        limits = self._thresholds
        short = {
            "memory": _is_below(usage.memory_free_bytes, limits.memory_bytes),
            "disk": _is_below(usage.storage_free_percent, limits.storage_percent)
            or _is_below(usage.inodes_free_percent, limits.inodes_percent),
            "pid": _is_below(usage.pids_free_percent, limits.pids_percent),
        }
        self._last_short.update({name: seconds for name, is_short in short.items() if is_short})
        return Pressure(
            **{name: seconds - self._last_short.get(name, -math.inf) < self._hold_seconds for name in short}
            | {name: True for name, is_short in short.items() if is_short}
        )


def _is_below(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value < limit
