"""Records and history of one resource.

Records are ordered by `Key.path`, history by revision, stored once for all readers. Readers hold a position in the
history; old events are dropped and positions stay valid, since they count from the very first event. Readers at the
same position get the same `Batch`. `State` decides when to drop, `Cursor` reads.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from sortedcontainers import SortedDict

from podlife.apiserver.storage.store import Batch, Event, EventType, Record

# A reader that is far behind catches up in pieces that other work fits between.
RUN_EVENTS = 1_000
RUN_BYTES = 1 << 20
# Readers that keep up are at most a few runs apart.
RUNS_KEPT = 4

_revision_of = attrgetter("record.revision")


class WatchCache:
    __slots__ = ("_base", "_events", "_listing", "_runs", "records", "waiters")

    def __init__(self, records: dict[str, Record] | None = None) -> None:
        self.records: SortedDict[str, Record] = SortedDict(records or {})
        # Woken, and forgotten, at the next event. A dictionary for its order: first come, first woken.
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
        # Nearly sorted already, which makes it nearly free.
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
            # The first event is included however large it is, or readers could never pass it.
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
