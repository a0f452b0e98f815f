"""When each pod is due for another sync: one time per UID; a new time replaces the old one, earlier or later (PW-100).

The pod workers put retries here; the sync loop waits and sends a sync for the pods that the node still has (PW-101).
The cost of taking depends on what is due, not on what is queued. `wait` returns at most once a second, and only with
due pods.
"""

from __future__ import annotations

import asyncio
import math
from heapq import heapify, heappop, heappush

from podlife.aio import wait_until_set
from podlife.kubelet.constants import SYNC_TICK_SECONDS

# Replaced times stay in the heap until they are due, but no more than there are current ones, plus this.
_SPARE = 64
# Maximum duration of a single wait; it is repeated.
_LONGEST_WAIT_SECONDS = 3600.0


class DueQueue:
    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._waits_for = math.inf
        self._is_earlier = asyncio.Event()

    def __len__(self) -> int:
        return len(self._due)

    @property
    def next_at(self) -> float:
        """The earliest time at which something may be due."""
        return self._heap[0][0] if self._heap else math.inf

    def due_at(self, uid: str) -> float | None:
        return self._due.get(uid)

    def put(self, uid: str, at: float) -> None:
        self._due[uid] = at
        heappush(self._heap, (at, uid))
        if len(self._heap) > 2 * len(self._due) + _SPARE:
            self._heap = [(at, uid) for uid, at in self._due.items()]
            heapify(self._heap)
        if at < self._waits_for:
            self._waits_for = at
            self._is_earlier.set()

    def put_earlier(self, uid: str, at: float) -> None:
        due = self.due_at(uid)
        if due is None or at < due:
            self.put(uid, at)

    def forget(self, uid: str) -> None:
        self._due.pop(uid, None)

    def take_due(self, now: float) -> list[str]:
        """Take the pods due before `now`, the earliest first."""
        taken: list[str] = []
        while self._heap and self._heap[0][0] < now:
            at, uid = heappop(self._heap)
            if self._due.get(uid) == at:
                del self._due[uid]
                taken.append(uid)
        return taken

    async def wait(self) -> list[str]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(SYNC_TICK_SECONDS)
        while not (due := self.take_due(loop.time())):
            self._is_earlier.clear()
            self._waits_for = self.next_at
            seconds = min(self._waits_for - loop.time(), _LONGEST_WAIT_SECONDS)
            await wait_until_set(self._is_earlier, seconds=max(seconds, 0.0))
            if not self._is_earlier.is_set():
                # Due is what is strictly before now.
                await asyncio.sleep(0.001)
        return due
