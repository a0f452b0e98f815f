"""A subscription: a position in the history of one resource.

It waits on its own future, which it removes however the wait ends, and advances only when it returns a batch: a
cancelled call loses nothing.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from podlife.apiserver.storage.store import Batch, CompactedError, StoreError
from podlife.apiserver.storage.watch_cache import WatchCache


class Progress(Protocol):
    """How far a store has come."""

    @property
    def revision(self) -> int: ...

    @property
    def oldest(self) -> int: ...

    @property
    def is_closed(self) -> bool: ...


class Cursor:
    __slots__ = ("_closed", "_collection", "_position", "_since", "_store", "_waiter")

    def __init__(self, store: Progress, collection: WatchCache, since: int) -> None:
        self._store = store
        self._collection = collection
        self._position = collection.position_after(since)
        self._since = since
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def revision(self) -> int:
        # A reader at the end knows that nothing else has happened to the resource until now.
        if self._position == self._collection.end:
            return max(self._since, self._store.revision)
        return self._since

    async def next(self) -> Batch:
        collection = self._collection
        while True:
            if self._closed or self._store.is_closed:
                raise StoreError("the subscription is closed")
            if collection.has_dropped(self._position):
                raise CompactedError(self._since, self._store.oldest)
            batch = collection.run(self._position)
            if batch is None:
                await self._wait()
                continue
            self._position += len(batch.events)
            batch = self._after_start(batch)
            if batch.events:
                self._since = batch.events[-1].revision
                return batch

    def close(self) -> None:
        self._closed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _after_start(self, batch: Batch) -> Batch:
        """Skip events up to `since`: a subscription may start at a future revision."""
        if batch.events[0].revision > self._since:
            return batch
        return Batch([event for event in batch.events if event.revision > self._since])

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiter = waiter
        self._collection.waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiter = None
            self._collection.waiters.pop(waiter, None)
