"""Revisioned log of changes and the resulting state, in memory.

It guarantees:

* Revisions only increase, by one for each change, across restarts too; what is acknowledged is durable.
* The changes of one `commit` are applied and seen together, or not at all.
* Readers see committed state only; a subscriber sees every later change of its resource, once and in order.
* Everything is bounded: history by age, by count and by the size of its values, for all resources together; a
  subscriber by that history. The oldest is dropped first, and a subscriber that falls out of it gets an error. Age is
  checked on writes and when history is read, so no timer is needed.

A commit is prepared (checked and encoded, nothing changed), stored, and applied: then all readers see it at once. All
methods are called on one event loop. `MemoryStore` and `SqliteStore` pass the same conformance suite.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from sys import intern

from podlife.apiserver.storage.key_locks import KeyLocks
from podlife.apiserver.storage.records import (
    Change,
    CompactedError,
    Delete,
    Event,
    EventType,
    Key,
    MismatchError,
    Record,
    Row,
    StoreError,
)
from podlife.apiserver.storage.watch_cache import Subscription, WatchCache

# History is dropped in stretches of this many seconds, or of a part of its bounds.
STRETCH_SECONDS = 1.0
STRETCH_PART = 64


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """History is kept until the first of these bounds is reached. kube-apiserver keeps it for 5 to 10 minutes, and its
    clients count on the pages of a list to expire within 10."""

    seconds: float = 300.0
    events: int = 100_000
    value_bytes: int = 64 << 20


@dataclass(slots=True)
class _Stretch:
    """A part of the history, up to a revision, which is dropped in one piece."""

    since: float
    until: float
    revision: int
    events: int
    value_bytes: int


class Store(ABC):
    """The reading half of a store; a subclass adds how changes are made durable."""

    def __init__(self, limits: HistoryLimits | None = None) -> None:
        self.is_closed = False
        # Titles of damaged rows that are not served.
        self.set_aside: Sequence[str] = ()
        self._limits = limits or HistoryLimits()
        self._locks = KeyLocks()
        self._collections: dict[str, WatchCache] = {}
        self._revision = 0
        self._compacted = 0
        self._stretches: deque[_Stretch] = deque()
        self._events = 0
        self._value_bytes = 0
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._followers: dict[str, list[Callable[[Event], None]]] = {}

    @property
    def revision(self) -> int:
        """The last committed revision."""
        return self._revision

    @property
    def trouble(self) -> str:
        """Why new objects are currently refused (`DISK_FULL`), or all writes permanently; empty if they are not."""
        return ""

    @property
    def oldest(self) -> int:
        """The oldest revision from which a list or a subscription can start."""
        self._drop_old(asyncio.get_running_loop().time())
        return self._compacted

    def get(self, key: Key) -> Record | None:
        collection = self._collections.get(key.resource)
        return None if collection is None else collection.records.get(key.path)

    def list(self, resource: str, namespace: str = "", *, revision: int | None = None) -> Sequence[Record]:
        """Objects of a resource (in one namespace), in the order of `Key.path`; now, or as of `revision`
        (CompactedError if that was compacted)."""
        if revision is not None and revision > self._revision:
            raise StoreError(f"revision {revision} has not been reached, the newest is {self._revision}")
        if revision is not None and revision < self.oldest:
            raise CompactedError(revision, self._compacted)
        collection = self._collections.get(resource)
        if collection is None:
            return ()
        if revision is None:
            return collection.standing(namespace)
        return collection.standing_at(revision, namespace)

    def count(self, resource: str) -> int:
        collection = self._collections.get(resource)
        return 0 if collection is None else len(collection.records)

    def locked(self, *keys: Key) -> AbstractAsyncContextManager[None]:
        """Hold the keys for a read, a decision and a commit. First come, first served; keys are locked in a fixed
        order, so that there are no deadlocks."""
        return self._locks.hold(keys)

    @abstractmethod
    async def commit(self, *changes: Change) -> Sequence[Record]:
        """Apply the changes together. Raises MismatchError if an `expected` does not hold, StoreError if they could
        not be stored; then none of them is applied. On return they are durable. A commit that has begun is
        finished even if its caller is cancelled.

        Every `expected` refers to the state before the commit: a change and the removal of the same key in one commit
        both name the revision that was read.

        Without changes it waits for earlier commits and writes nothing.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish pending commits, refuse new ones, end every subscription."""

    def subscribe(self, resource: str, *, since: int) -> Subscription:
        """Every change of the resource after revision `since`. Raises CompactedError if that is too old."""
        self.refuse_when_closed()
        if since < self.oldest:
            raise CompactedError(since, self._compacted)
        return Subscription(self, self._collection(resource), since)

    def follow(self, resource: str, react: Callable[[Event], None]) -> None:
        """Call `react`, which must not raise, with every existing object of the resource and then with every change, in
        order, before any reader sees what the change was about."""
        for record in self.list(resource):
            react(Event(EventType.ADDED, record, None))
        self._followers.setdefault(resource, []).append(react)

    async def wait_for_revision(self, revision: int, *, seconds: float) -> bool:
        """Wait until the store has reached the revision; returns whether it has."""
        if self._revision >= revision:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = revision
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(waiter, None)
        return self._revision >= revision

    def refuse_when_closed(self) -> None:
        if self.is_closed:
            raise StoreError("the store is closed")

    def prepare(self, changes: Sequence[Change], after: int) -> Sequence[Event]:
        """Prepare the changes, with the revisions that follow `after`. Nothing is applied yet.

        Raises MismatchError, and whatever an `encode` raises.
        """
        for change in changes:
            self._check(change)
        events: list[Event] = []
        within: dict[Key, Record | None] = {}
        for revision, change in enumerate(changes, after + 1):
            key = change.key
            previous = within[key] if key in within else self.get(key)
            is_deleted = isinstance(change, Delete)
            if is_deleted and previous is None:
                raise MismatchError(f"{key.resource} {key.path} is absent, there is nothing to delete")
            record = Record(key, revision, change.encode(revision))
            within[key] = None if is_deleted else record
            events.append(Event(_kind(previous, is_deleted=is_deleted), record, previous))
        return events

    def apply(self, events: Sequence[Event]) -> None:
        """Apply the prepared events, in the order of their revisions, and wake the waiters."""
        touched: dict[WatchCache, None] = {}
        value_bytes = 0
        for event in events:
            collection = self._collection(event.record.key.resource)
            collection.apply(event)
            for react in self._followers.get(event.record.key.resource, ()):
                react(event)
            touched[collection] = None
            value_bytes += len(event.record.value)
        self._revision = events[-1].revision
        now = asyncio.get_running_loop().time()
        self._lengthen(now, len(events), value_bytes)
        self._drop_excess()
        self._drop_old(now)
        for collection in touched:
            collection.wake()
        if self._waiting:
            self._wake_waiting()

    def load(self, compacted: int, rows: Iterable[Row], now: float) -> None:
        """Replace everything with stored rows, oldest first: every existing record and the history after `compacted`.
        Earlier rows only contribute their record."""
        standing: dict[str, dict[str, Record]] = {}
        history: list[Event] = []
        self._stretches.clear()
        self._events = self._value_bytes = 0
        for revision, resource, namespace, name, deleted, _, value in rows:
            key = Key(intern(resource), intern(namespace), name)
            path = key.path
            records = standing.setdefault(key.resource, {})
            previous = records.pop(path, None) if deleted else records.get(path)
            record = Record(key if previous is None else previous.key, revision, value)
            if not deleted:
                records[path] = record
            if revision > compacted:
                history.append(Event(_kind(previous, is_deleted=bool(deleted)), record, previous))
        self._collections = {resource: WatchCache(records) for resource, records in standing.items()}
        self._compacted = self._revision = compacted
        for event in history:
            self._collections[event.record.key.resource].remember(event)
            self._revision = event.revision
            self._lengthen(now, 1, len(event.record.value))
        self._drop_excess()

    def end(self) -> None:
        """Close: wake all waiters, which then end."""
        self.is_closed = True
        for collection in self._collections.values():
            collection.wake()
        self._wake_waiting()

    def _collection(self, resource: str) -> WatchCache:
        collection = self._collections.get(resource)
        if collection is None:
            collection = self._collections[resource] = WatchCache()
        return collection

    def _check(self, change: Change) -> None:
        record = self.get(change.key)
        found = 0 if record is None else record.revision
        if found != change.expected:
            standing = f"at revision {found}" if found else "absent"
            expected = f"at revision {change.expected}" if change.expected else "absent"
            raise MismatchError(f"{change.key.resource} {change.key.path} is {standing}, not {expected}")

    def _wake_waiting(self) -> None:
        for waiter, revision in self._waiting.items():
            if (self._revision >= revision or self.is_closed) and not waiter.done():
                waiter.set_result(None)

    def _lengthen(self, now: float, events: int, value_bytes: int) -> None:
        self._events += events
        self._value_bytes += value_bytes
        last = self._stretches[-1] if self._stretches else None
        if (
            last is None
            or now - last.since >= STRETCH_SECONDS
            or last.events + events > self._limits.events // STRETCH_PART
            or last.value_bytes + value_bytes > self._limits.value_bytes // STRETCH_PART
        ):
            self._stretches.append(_Stretch(now, now, self._revision, events, value_bytes))
            return
        last.until = now
        last.revision = self._revision
        last.events += events
        last.value_bytes += value_bytes

    def _drop_excess(self) -> None:
        limits = self._limits
        if self._events <= limits.events and self._value_bytes <= limits.value_bytes:
            return
        # Drop a little more than needed, so that this does not run for every event.
        events = limits.events - limits.events // 8
        value_bytes = limits.value_bytes - limits.value_bytes // 8
        while self._stretches and (self._events > events or self._value_bytes > value_bytes):
            self._drop_stretch()
        self._forget_dropped()

    def _drop_old(self, now: float) -> None:
        if not self._stretches or now - self._stretches[0].until <= self._limits.seconds:
            return
        while self._stretches and now - self._stretches[0].until > self._limits.seconds:
            self._drop_stretch()
        self._forget_dropped()

    def _drop_stretch(self) -> None:
        stretch = self._stretches.popleft()
        self._events -= stretch.events
        self._value_bytes -= stretch.value_bytes
        self._compacted = stretch.revision

    def _forget_dropped(self) -> None:
        for collection in self._collections.values():
            collection.drop_until(self._compacted)


class MemoryStore(Store):
    """Not durable: for tests, and for the whole system under virtual time. It has no thread and never waits: changes
    are applied when `commit` returns."""

    async def commit(self, *changes: Change) -> Sequence[Record]:
        self.refuse_when_closed()
        events = self.prepare(changes, self.revision)
        if events:
            self.apply(events)
        return [event.record for event in events]

    async def close(self) -> None:
        self.end()


def _kind(previous: Record | None, *, is_deleted: bool) -> EventType:
    if is_deleted:
        return EventType.DELETED
    return EventType.ADDED if previous is None else EventType.MODIFIED
