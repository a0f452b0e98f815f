"""What the runtime was last observed to have of each pod, and how fresh that is.

A reader that needs it fresher waits for the next observation of its pod or of everything (PL-12). A pod of which the
runtime has nothing has an empty status (PL-04). A pod that could not be read raises the reason (PL-05). Observing is
left to `GenericPLEG`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from podlife.kubelet.observed_pod import ObservedPod

_NOTHING = ObservedPod()


class _Entry(msgspec.Struct, frozen=True):
    observed: ObservedPod
    # When the look began, in the workers' own time.
    at: float
    error: Exception | None = None


class _Waiter(msgspec.Struct, frozen=True):
    newer_than: float
    answer: asyncio.Future[ObservedPod]


class PodCache:
    def __init__(self) -> None:
        self._readers: list[Callable[[str], None]] = []
        self._entries: dict[str, _Entry] = {}
        self._waiters: dict[str, list[_Waiter]] = {}
        # Everything is at least as new as this.
        self._all_at = -math.inf

    def __iter__(self) -> Iterator[str]:
        """UIDs of which the runtime has something."""
        return iter(self._entries)

    def on_wanted(self, read: Callable[[str], None]) -> None:
        """Call `read` with each pod for which a reader waits: whoever fills the cache registers here."""
        self._readers.append(read)

    def get(self, uid: str) -> ObservedPod:
        entry = self._entries.get(uid)
        if entry is None:
            return _NOTHING
        if entry.error is not None:
            raise entry.error
        return entry.observed

    def last_seen(self, uid: str) -> ObservedPod:
        """As `get`; where the last look failed, what the one before found."""
        entry = self._entries.get(uid)
        return _NOTHING if entry is None else entry.observed

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod | Awaitable[ObservedPod]:
        if seconds is None or self._at(uid) > seconds:
            return self.get(uid)
        return self._wait(uid, seconds)

    async def read_newer_than(self, uid: str, seconds: float) -> ObservedPod:
        """As `get_newer_than`, always to be waited for."""
        return self.get(uid) if self._at(uid) > seconds else await self._wait(uid, seconds)

    def is_newer_than(self, uid: str, seconds: float) -> bool:
        return self._at(uid) > seconds

    # What was seen

    def put(self, uid: str, observed: ObservedPod, at: float) -> None:
        """An empty one is forgotten: there is no such pod in the runtime."""
        if observed.sandboxes or observed.containers:
            self._entries[uid] = _Entry(observed, at)
        else:
            self._entries.pop(uid, None)
        self._answer(uid, at)

    def put_error(self, uid: str, error: Exception, at: float) -> None:
        """What was seen before is kept, for who compares; whoever asks is told that it is not known."""
        self._entries[uid] = _Entry(self.last_seen(uid), at, error)
        self._answer(uid, at)

    def put_all_at(self, at: float) -> None:
        """Every pod was looked at since (PL-12)."""
        self._all_at = max(self._all_at, at)
        for uid in list(self._waiters):
            self._answer(uid, at)

    def _at(self, uid: str) -> float:
        entry = self._entries.get(uid)
        return self._all_at if entry is None else max(entry.at, self._all_at)

    async def _wait(self, uid: str, seconds: float) -> ObservedPod:
        waiter = _Waiter(seconds, asyncio.get_running_loop().create_future())
        self._waiters.setdefault(uid, []).append(waiter)
        for read in self._readers:
            read(uid)
        try:
            return await waiter.answer
        finally:
            left = [each for each in self._waiters.get(uid, ()) if each is not waiter]
            if left:
                self._waiters[uid] = left
            else:
                self._waiters.pop(uid, None)

    def _answer(self, uid: str, at: float) -> None:
        for waiter in self._waiters.get(uid, ()):
            if waiter.newer_than < at and not waiter.answer.done():
                try:
                    waiter.answer.set_result(self.get(uid))
                except Exception as error:  # noqa: BLE001 - whatever kept it from being known is for who asked
                    waiter.answer.set_exception(error)
