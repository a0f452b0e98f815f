"""The last observed runtime state of each pod, with the time of observation.

A reader that needs newer data waits for the next observation of its pod, or for a relist (PL-12). A pod without
anything in the runtime has an empty status (PL-04). If the last observation failed, reading raises its error (PL-05).
`GenericPLEG` fills the cache.
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
    # When the observation began (monotonic time).
    at: float
    error: Exception | None = None


class _Waiter(msgspec.Struct, frozen=True):
    newer_than: float
    result: asyncio.Future[ObservedPod]


class PodCache:
    def __init__(self) -> None:
        self._readers: list[Callable[[str], None]] = []
        self._entries: dict[str, _Entry] = {}
        self._waiters: dict[str, list[_Waiter]] = {}
        # All entries are at least this new.
        self._all_at = -math.inf

    def __iter__(self) -> Iterator[str]:
        """UIDs of pods with anything in the runtime."""
        return iter(self._entries)

    def on_wanted(self, read: Callable[[str], None]) -> None:
        """Call `read` with each pod that a reader waits for. The producer of observations registers here."""
        self._readers.append(read)

    def get(self, uid: str) -> ObservedPod:
        entry = self._entries.get(uid)
        if entry is None:
            return _NOTHING
        if entry.error is not None:
            raise entry.error
        return entry.observed

    def last_seen(self, uid: str) -> ObservedPod:
        """As `get`, but if the last observation failed, the result of the one before."""
        entry = self._entries.get(uid)
        return _NOTHING if entry is None else entry.observed

    def get_newer_than(self, uid: str, seconds: float | None) -> ObservedPod | Awaitable[ObservedPod]:
        if seconds is None or self._at(uid) > seconds:
            return self.get(uid)
        return self._wait(uid, seconds)

    async def read_newer_than(self, uid: str, seconds: float) -> ObservedPod:
        """As `get_newer_than`, but always awaitable."""
        return self.get(uid) if self._at(uid) > seconds else await self._wait(uid, seconds)

    def is_newer_than(self, uid: str, seconds: float) -> bool:
        return self._at(uid) > seconds

    # Observations

    def put(self, uid: str, observed: ObservedPod, at: float) -> None:
        """An empty pod is removed: the runtime does not have it."""
        if observed.sandboxes or observed.containers:
            self._entries[uid] = _Entry(observed, at)
        else:
            self._entries.pop(uid, None)
        self._notify(uid, at)

    def put_error(self, uid: str, error: Exception, at: float) -> None:
        """Keeps the previous observation for `last_seen`; `get` raises the error."""
        self._entries[uid] = _Entry(self.last_seen(uid), at, error)
        self._notify(uid, at)

    def put_all_at(self, at: float) -> None:
        """A relist that began at that time has observed every pod (PL-12)."""
        self._all_at = max(self._all_at, at)
        for uid in list(self._waiters):
            self._notify(uid, at)

    def _at(self, uid: str) -> float:
        entry = self._entries.get(uid)
        return self._all_at if entry is None else max(entry.at, self._all_at)

    async def _wait(self, uid: str, seconds: float) -> ObservedPod:
        waiter = _Waiter(seconds, asyncio.get_running_loop().create_future())
        self._waiters.setdefault(uid, []).append(waiter)
        for read in self._readers:
            read(uid)
        try:
            return await waiter.result
        finally:
            left = [each for each in self._waiters.get(uid, ()) if each is not waiter]
            if left:
                self._waiters[uid] = left
            else:
                self._waiters.pop(uid, None)

    def _notify(self, uid: str, at: float) -> None:
        for waiter in self._waiters.get(uid, ()):
            if waiter.newer_than < at and not waiter.result.done():
                try:
                    waiter.result.set_result(self.get(uid))
                except Exception as error:  # noqa: BLE001 - the error of the observation is for the reader
                    waiter.result.set_exception(error)
