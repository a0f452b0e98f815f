"""The deduplicating queue; the package has its guarantees.

Invariants: a key is in `_order` only if it is in `_waiting_since` and not in `_working_since`; a key in both of these
was added while it was being processed, and is put in `_order` when that is done.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

from podlife.errors import PodlifeError

K = TypeVar("K", bound=Hashable)

# client-go's buckets, so that existing dashboards work.
SECONDS: tuple[float, ...] = tuple(10.0**power for power in range(-8, 2))


class Distribution:
    """A histogram: `counts[i]` observations were at most `bounds[i]`; the last count has all above."""

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
        """As Prometheus expects: for each bound, the number of observations up to it; the last bound is infinity."""
        so_far = 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            so_far += count
            yield bound, so_far


class QueueMetrics:
    """`adds` counts keys that were queued (not duplicates), `retries` delayed ones."""

    __slots__ = ("adds", "queue_seconds", "retries", "work_seconds")

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        # How long keys waited in the queue, and how long they were processed.
        self.queue_seconds = Distribution()
        self.work_seconds = Distribution()


class ShutDownError(PodlifeError):
    """The queue is shut down and empty: the worker should end."""


class Queue(Generic[K]):
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.metrics = QueueMetrics()
        self._order: deque[K] = deque()
        # Keys that need processing, and since when; client-go's dirty set.
        self._waiting_since: dict[K, float] = {}
        self._working_since: dict[K, float] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self.is_shutting_down = False
        self._drainers: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        """Number of keys that can be taken now."""
        return len(self._order)

    @property
    def depth(self) -> int:
        """Number of keys that need processing, including those being processed that were added again."""
        return len(self._waiting_since)

    @property
    def working(self) -> int:
        return len(self._working_since)

    def add(self, key: K) -> None:
        """Queue the key. Ignored when the queue is shutting down."""
        if self.is_shutting_down or key in self._waiting_since:
            return
        self.metrics.adds += 1
        self._waiting_since[key] = asyncio.get_running_loop().time()
        if key not in self._working_since:
            self._put_in_order(key)

    async def get(self) -> K:
        """The next key, exclusively for the caller until `done`. Raises ShutDownError if no more will come."""
        while not self._order:
            if self.is_shutting_down:
                raise ShutDownError(f"the queue {self.name} is shut down")
            await self._wait()
        key = self._order.popleft()
        now = asyncio.get_running_loop().time()
        self.metrics.queue_seconds.observe(now - self._waiting_since.pop(key))
        self._working_since[key] = now
        return key

    def done(self, key: K) -> None:
        """The key was processed; it is queued again if it was added meanwhile. Raises ValueError for a key that is not
        being processed."""
        started = self._working_since.pop(key, None)
        if started is None:
            raise ValueError(f"key {key!r} is not being processed")
        self.metrics.work_seconds.observe(asyncio.get_running_loop().time() - started)
        if key in self._waiting_since:
            self._put_in_order(key)
        if not self._working_since and not self._order:
            self._release_drainers()

    async def shut_down(self, *, drain: bool = False) -> None:
        """Accept no more keys. Queued keys are still handed out; then getters raise ShutDownError.

        With `drain` it returns when all are done; that needs workers, so use a deadline. A later call without `drain`
        ends the wait."""
        self.is_shutting_down = True
        while self._getters:
            self._wake_one()
        if not drain:
            self._release_drainers()
        elif self._working_since or self._order:
            drainer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drainers.append(drainer)
            await drainer

    def unfinished_seconds(self) -> float:
        """Total processing time so far of all keys in progress."""
        now = asyncio.get_running_loop().time()
        return sum(now - started for started in self._working_since.values())

    def longest_running_seconds(self) -> float:
        if not self._working_since:
            return 0.0
        return asyncio.get_running_loop().time() - min(self._working_since.values())

    def _put_in_order(self, key: K) -> None:
        self._order.append(key)
        self._wake_one()

    def _release_drainers(self) -> None:
        while self._drainers:
            drainer = self._drainers.pop()
            if not drainer.done():
                drainer.set_result(None)

    async def _wait(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if getter.done() and not getter.cancelled():
                # Woken and cancelled at the same time: wake the next getter.
                self._wake_one()
            elif getter in self._getters:
                self._getters.remove(getter)
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
