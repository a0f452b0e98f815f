"""What a queue counts about itself: plain numbers that an exporter reads when it is asked.

Nothing here runs by itself. What grows while nothing happens (how long work has been going on) is worked out
from the starts at the moment of reading.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

# From ten nanoseconds to ten seconds and more: client-go's buckets, so that dashboards fit.
SECONDS: tuple[float, ...] = tuple(10.0**power for power in range(-8, 2))


class Distribution:
    """A histogram: `counts[i]` observations were at most `bounds[i]`, the last count is of all beyond."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def total(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> Iterable[tuple[float, int]]:
        """As Prometheus wants it: for each bound, how many were at most that; the last bound is infinity."""
        so_far = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            so_far += count
            yield bound, so_far


class QueueMetrics:
    """`adds` counts keys that were really queued (not the collapsed ones), `retries` those put off to later."""

    __slots__ = ("adds", "queue_seconds", "retries", "work_seconds")

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        # How long keys waited in the queue, and how long they were processed.
        self.queue_seconds = Distribution()
        self.work_seconds = Distribution()
