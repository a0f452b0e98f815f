"""A queue with delayed additions.

A key has at most one due time, which only ever moves earlier: a later request changes nothing. A plain `add` takes
effect at once and does not affect the due time. There is one timer, for the earliest key. Delayed keys are dropped at
shutdown.
"""

from __future__ import annotations

import asyncio
import math

from sortedcontainers import SortedDict

from podlife.workqueue.queue import K, Queue


class DelayingQueue(Queue[K]):
    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        # Due time of a key, and a number that orders keys with equal times.
        self._due: dict[K, tuple[float, int]] = {}
        self._later: SortedDict[tuple[float, int], K] = SortedDict()
        self._added = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def delayed(self) -> int:
        return len(self._due)

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key after this delay. Raises ValueError for an infinite one."""
        if not math.isfinite(seconds):
            raise ValueError(f"invalid delay for {key!r}: {seconds} seconds")
        if self.is_shutting_down:
            return
        self.metrics.retries += 1
        if seconds <= 0:
            self.add(key)
            return
        at = asyncio.get_running_loop().time() + seconds
        known = self._due.get(key)
        if known is not None:
            if known[0] <= at:
                return
            del self._later[known]
        self._added += 1
        self._due[key] = (at, self._added)
        self._later[at, self._added] = key
        self._set_timer()

    async def shut_down(self, *, drain: bool = False) -> None:
        self._due.clear()
        self._later.clear()
        self._set_timer()
        await super().shut_down(drain=drain)

    def _set_timer(self) -> None:
        earliest = self._later.peekitem(0)[0][0] if self._later else None
        if self._timer is not None:
            if self._timer.when() == earliest:
                return
            self._timer.cancel()
            self._timer = None
        if earliest is not None:
            self._timer = asyncio.get_running_loop().call_at(earliest, self._add_due, earliest)

    def _add_due(self, until: float) -> None:
        self._timer = None
        # A timer may fire slightly early: its key is due anyway.
        until = max(until, asyncio.get_running_loop().time())
        while self._later and self._later.peekitem(0)[0][0] <= until:
            key = self._later.popitem(0)[1]
            del self._due[key]
            self.add(key)
        self._set_timer()
