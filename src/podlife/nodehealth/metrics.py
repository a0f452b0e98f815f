"""Counters of node health, read by an exporter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from podlife.nodehealth.zones import ZoneCount
from podlife.workqueue import Distribution

_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class NodeMetrics:
    """`evictions`: nodes tainted, by zone (NL-57); `zones`: ready and unready nodes per zone (NL-78)."""

    def __init__(self) -> None:
        self.evictions: Counter[str] = Counter()
        self.zones: dict[str, ZoneCount] = {}
        self.pass_seconds = Distribution(_SECONDS)

    def set_zones(self, counts: Mapping[str, ZoneCount]) -> None:
        """A zone without nodes is exported as empty and healthy, so that its alerts resolve."""
        gone = {zone: ZoneCount() for zone in self.zones if zone not in counts}
        self.zones = {**gone, **counts}


class EvictionMetrics:
    """Pods deleted, and the delay after their due time (TE-20)."""

    def __init__(self) -> None:
        self.deletions = 0
        self.delay_seconds = Distribution(_SECONDS)


class OutOfServiceMetrics:
    """`removed` and `refused` by reason, `checks` by kind and result, `nodes` by who set the taint."""

    def __init__(self) -> None:
        self.tainted = 0
        self.removed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.checks: Counter[tuple[str, str]] = Counter()
        self.nodes: Counter[str] = Counter()
