"""When each pod is to be looked at again: one time per UID, and the newest counts, sooner or later (PW-100).

It has no timers. Whoever has the node's configuration asks every now and then what is due, and sends a sync update
for the pods that it still has (PW-101). Asking costs as much as is due, however many wait.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

__all__ = ["RetryQueue"]

# Overwritten times stay in the heap until their hour comes, but no more of them than of those that count.
_SPARE = 64


class RetryQueue:
    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._due)

    @property
    def next_at(self) -> float:
        """Nothing is due before this moment."""
        return self._heap[0][0] if self._heap else math.inf

    def due_at(self, uid: str) -> float | None:
        return self._due.get(uid)

    def put(self, uid: str, at: float) -> None:
        self._due[uid] = at
        heappush(self._heap, (at, uid))
        if len(self._heap) > 2 * len(self._due) + _SPARE:
            self._heap = [(at, uid) for uid, at in self._due.items()]
            heapify(self._heap)

    def forget(self, uid: str) -> None:
        self._due.pop(uid, None)

    def take_due(self, now: float) -> list[str]:
        """Those whose time lies before now, the earliest first."""
        taken: list[str] = []
        while self._heap and self._heap[0][0] < now:
            at, uid = heappop(self._heap)
            if self._due.get(uid) == at:
                del self._due[uid]
                taken.append(uid)
        return taken
