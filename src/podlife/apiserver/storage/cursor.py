"""A subscription: a position in the history of one resource.

It waits with a future of its own, which it takes back however the wait ends, and moves on only when it hands
a batch out: a cancelled call loses nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from podlife.apiserver.storage.store import Batch, CompactedError, StoreError

if TYPE_CHECKING:
    from podlife.apiserver.storage.collection import Collection
    from podlife.apiserver.storage.state import State

__all__ = ["Cursor"]


class Cursor:
    __slots__ = ("_closed", "_collection", "_position", "_since", "_state", "_waiter")

    def __init__(self, state: State, collection: Collection, since: int) -> None:
        self._state = state
        self._collection = collection
        self._position = collection.position_after(since)
        self._since = since
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def revision(self) -> int:
        # Who has read to the end knows that nothing else has happened to the resource until now.
        if self._position == self._collection.end:
            return max(self._since, self._state.revision)
        return self._since

    async def next(self) -> Batch:
        collection = self._collection
        while True:
            if self._closed or self._state.is_closed:
                raise StoreError("the subscription is closed")
            if collection.has_dropped(self._position):
                raise CompactedError(self._since, self._state.oldest)
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
        """Leave out what is not after `since`: a subscription may start at a revision still to come."""
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
