"""Records and history of one resource, and its subscribers.

Records are ordered by `Key.path`, history by revision, stored once for all readers. A subscription holds a position in
the history and no events, so it needs no bound; old events are dropped and positions stay valid, since they count from
the first event ever. Readers at the same position get the same `Batch`. The store decides when to drop events.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

from sortedcontainers import SortedDict

from podlife.apiserver.storage.records import Batch, CompactedError, Event, EventType, Record, StoreError

# A reader that is far behind catches up in batches, and yields between them.
RUN_EVENTS = 1_000
RUN_BYTES = 1 << 20
# Readers that keep up are at most a few runs apart.
RUNS_KEPT = 4

_revision_of = attrgetter("record.revision")


class WatchCache:
    __slots__ = ("_base", "_events", "_listing", "_runs", "records", "waiters")

    def __init__(self, records: dict[str, Record] | None = None) -> None:
        self.records: SortedDict[str, Record] = SortedDict(records or {})
        # Woken and removed at the next event. A dictionary for its order: first come, first woken.
        self.waiters: dict[asyncio.Future[None], None] = {}
        self._events: list[Event] = []
        # Position of the first event that is still kept.
        self._base = 0
        self._runs: dict[int, Batch] = {}
        self._listing: tuple[Record, ...] | None = None

    @property
    def end(self) -> int:
        """The position after the newest event."""
        return self._base + len(self._events)

    def position_after(self, revision: int) -> int:
        """The position of the first event after the revision."""
        return self._base + bisect_right(self._events, revision, key=_revision_of)

    def standing(self, namespace: str) -> Sequence[Record]:
        if namespace:
            return list(map(self.records.__getitem__, self._paths(namespace)))
        if self._listing is None:
            self._listing = tuple(map(self.records.__getitem__, self.records))
        return self._listing

    def standing_at(self, revision: int, namespace: str) -> Sequence[Record]:
        """The records as of a revision: the current ones, with every later event undone."""
        later = self._events[self.position_after(revision) - self._base :]
        if not later:
            return self.standing(namespace)
        undone: dict[str, Record | None] = {}
        for event in reversed(later):
            if not namespace or event.record.key.namespace == namespace:
                undone[event.record.key.path] = event.previous
        records = self.records
        paths = self._paths(namespace)
        paths.extend(path for path in undone if path not in records)
        # Nearly sorted already, so this is cheap.
        paths.sort()
        stood = (undone[path] if path in undone else records[path] for path in paths)
        return [record for record in stood if record is not None]

    def apply(self, event: Event) -> None:
        """Apply the event. Waiters are woken separately, once for all events that are applied together."""
        path = event.record.key.path
        if event.type is EventType.DELETED:
            del self.records[path]
        else:
            self.records[path] = event.record
        self._events.append(event)
        self._listing = None

    def remember(self, event: Event) -> None:
        """Add an event whose effect the records already include."""
        self._events.append(event)

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def drop_until(self, revision: int) -> None:
        """Drop the events up to a revision."""
        count = bisect_right(self._events, revision, key=_revision_of)
        if count:
            del self._events[:count]
            self._base += count
            for start in [start for start in self._runs if start < self._base]:
                self._forget(start)

    def has_dropped(self, position: int) -> bool:
        return position < self._base

    def run(self, position: int) -> Batch | None:
        """A bounded number of events from a position on; None if there are none yet."""
        run = self._runs.get(position)
        if run is None and position < self.end:
            run = self._runs[position] = Batch(self._slice(position - self._base))
            if len(self._runs) > RUNS_KEPT:
                self._forget(next(iter(self._runs)))
        return run

    def _slice(self, start: int) -> list[Event]:
        events = self._events[start : start + RUN_EVENTS]
        room = RUN_BYTES
        for count, event in enumerate(events):
            room -= len(event.record.value)
            # The first event is always included, or readers could never pass a large one.
            if room < 0 and count:
                return events[:count]
        return events

    def _forget(self, start: int) -> None:
        # Bytes encoded for the readers of a run are dropped with it: history holds values, not copies.
        for event in self._runs.pop(start).events:
            event.frames.clear()

    def _paths(self, namespace: str) -> list[str]:
        if not namespace:
            return [*self.records]
        # `0` follows `/`: everything that starts with the namespace and a slash, and nothing else.
        return [*self.records.irange(f"{namespace}/", f"{namespace}0", inclusive=(True, False))]


class Progress(Protocol):
    """How far a store has come."""

    @property
    def revision(self) -> int: ...

    @property
    def oldest(self) -> int: ...

    @property
    def is_closed(self) -> bool: ...


class Subscription:
    """A position in the history of one resource. It waits on its own future, which it removes however the wait ends,
    and advances only when it returns a batch: a cancelled call loses nothing."""

    __slots__ = ("_closed", "_collection", "_ended", "_position", "_since", "_store", "_waiter")

    def __init__(self, store: Progress, collection: WatchCache, since: int) -> None:
        self._store = store
        self._collection = collection
        self._position = collection.position_after(since)
        self._since = since
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self._ended = False

    @property
    def revision(self) -> int:
        """All events of this resource up to this revision have been returned."""
        # For a reader at the end, the resource has not changed since.
        if self._position == self._collection.end:
            return max(self._since, self._store.revision)
        return self._since

    async def next(self) -> Batch:
        """Wait for the next events, in order. Raises CompactedError if this reader fell out of history."""
        collection = self._collection
        while True:
            if self._closed or self._store.is_closed:
                raise StoreError("the subscription is closed")
            if collection.has_dropped(self._position):
                raise CompactedError(self._since, self._store.oldest)
            batch = collection.run(self._position)
            if batch is None:
                if self._ended:
                    raise StoreError("the subscription has ended")
                await self._wait()
                continue
            self._position += len(batch.events)
            if batch.events[0].revision <= self._since:
                # A subscription may start at a future revision.
                batch = Batch([event for event in batch.events if event.revision > self._since])
            if batch.events:
                self._since = batch.events[-1].revision
                return batch

    def end(self) -> None:
        """Raise StoreError after the events that are already there."""
        self._ended = True
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiter = waiter
        self._collection.waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiter = None
            self._collection.waiters.pop(waiter, None)
