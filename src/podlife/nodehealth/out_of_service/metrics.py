"""Counters of the out-of-service controller, read by an exporter."""

from __future__ import annotations

from collections import Counter


class OutOfServiceMetrics:
    """`removed` and `refused` are by reason, a refusal each time that it is told; `checks` by kind and result; `nodes`
    is how many are out of service now, by whose taint it is."""

    def __init__(self) -> None:
        self.tainted = 0
        self.removed: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.checks: Counter[tuple[str, str]] = Counter()
        self.nodes: Counter[str] = Counter()
