"""Interface between the API server and its storage.

A store is a revisioned log of changes and the state they add up to. It guarantees:

* Revisions only increase, by one for each change, across restarts too; what is acknowledged is durable.
* The changes of one `commit` are applied and seen together, or not at all.
* Readers see committed state only; a subscriber sees every later change of its resource, once and in order.
* Values are opaque bytes. A value learns its own revision when it is written, through `encode(revision)`, so that the
  bytes in the store are the bytes on the wire.
* Everything is bounded: history by age and size, a subscriber by that history. A subscriber that falls out of it gets
  an error.

All methods are called on one event loop. `MemoryStore` and `SqliteStore` pass the same conformance suite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from podlife.errors import PodlifeError

DISK_FULL = "the disk is full"


class StoreError(PodlifeError):
    """The store could not keep a change (a full or failing disk). None of it was kept; reads continue."""


class StoreFullError(StoreError):
    """There is no room on the disk for the change."""


class StoreLostError(StoreError):
    """The store's files were removed, replaced or changed by another process: no more writes."""


class MismatchError(StoreError):
    """The key is not at the expected revision. Nothing was written."""


class CompactedError(StoreError):
    """The requested history is no longer kept. `oldest` is the first revision still there."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} has been compacted, the oldest kept is {oldest}")
        self.revision = revision
        self.oldest = oldest


class Key(NamedTuple):
    """Key of an object. `resource` is `pods` or `deployments.apps`; the namespace of a cluster-scoped object is
    empty."""

    resource: str
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The part that orders a list, as in etcd: `namespace/name`, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Record:
    """One stored version of an object. Immutable; `cache` is for values that are costly to derive from it."""

    __slots__ = ("cache", "key", "revision", "value")

    def __init__(self, key: Key, revision: int, value: bytes) -> None:
        self.key = key
        self.revision = revision
        self.value = value
        self.cache: object = None


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event:
    """One change, as its subscribers see it. After a deletion `record` holds the last state of the object, written
    with the revision of the deletion. `previous` is the version before."""

    __slots__ = ("frames", "previous", "record", "type")

    def __init__(self, type: EventType, record: Record, previous: Record | None) -> None:  # noqa: A002
        self.type = type
        self.record = record
        self.previous = previous
        # Bytes encoded for the wire, by format: an event is encoded once for all its watchers.
        self.frames: dict[object, bytes] = {}

    @property
    def revision(self) -> int:
        return self.record.revision


@dataclass(frozen=True, slots=True)
class Put:
    """Write the value under the key. `expected` is the revision that must be current; 0 means the key must not
    exist."""

    key: Key
    encode: Callable[[int], bytes]
    expected: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the key, which must be at revision `expected`; `encode` gives its last state."""

    key: Key
    encode: Callable[[int], bytes]
    expected: int


Change = Put | Delete


class Batch:
    """What one call of `Subscription.next` returns: a run of events, shared by all who read the same run.

    `frames` lets subscribers share what they encode of the whole run, by format; `groups` lets those that each select
    one value of a field share the work of sorting the run by it.
    """

    __slots__ = ("events", "frames", "groups")

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.frames: dict[object, bytes] = {}
        self.groups: dict[object, dict[str, list[Event]]] = {}


class Subscription(Protocol):
    """A cursor in the history of one resource. It holds no events, so it needs no bound."""

    async def next(self) -> Batch:
        """Wait for the next events, in order. Raises CompactedError if this reader fell out of history.

        Cancelling the call loses nothing: the next call continues at the same position.
        """
        ...

    @property
    def revision(self) -> int:
        """All events of this resource up to this revision have been returned."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def revision(self) -> int:
        """The last committed revision."""
        ...

    @property
    def oldest(self) -> int:
        """The oldest revision from which a list or a subscription can start."""
        ...

    @property
    def trouble(self) -> str:
        """Why new objects are refused at the moment (`DISK_FULL`), or all writes for good; empty if they are not."""
        ...

    @property
    def set_aside(self) -> Sequence[str]:
        """Titles of the rows that were damaged when the store was opened, and are not served."""
        ...

    def get(self, key: Key) -> Record | None: ...

    def list(self, resource: str, namespace: str = "", *, revision: int | None = None) -> Sequence[Record]:
        """Objects of a resource (in one namespace), in the order of `Key.path`; now, or as of `revision`
        (CompactedError if that is no longer known)."""
        ...

    def count(self, resource: str) -> int: ...

    def locked(self, *keys: Key) -> AbstractAsyncContextManager[None]:
        """Hold the keys for a read, a decision and a commit. First come, first served; keys are always taken in the
        same order, so that there are no deadlocks."""
        ...

    async def commit(self, *changes: Change) -> Sequence[Record]:
        """Apply the changes together. Raises MismatchError if an `expected` does not hold, StoreError if they could
        not be stored; then none of them is applied. On return they are durable. A commit that has begun is
        finished even if its caller is cancelled.

        Every `expected` refers to the state before the commit: a change and the removal of the same key in one commit
        both name the revision that was read.

        Without changes it waits for the commits that were begun before it, and writes nothing.
        """
        ...

    def subscribe(self, resource: str, *, since: int) -> Subscription:
        """Every change of the resource after revision `since`. Raises CompactedError if that is too old."""
        ...

    async def wait_for_revision(self, revision: int, *, seconds: float) -> bool:
        """Wait until the store has reached the revision; returns whether it has."""
        ...

    async def close(self) -> None:
        """Finish pending commits, refuse new ones, end every subscription."""
        ...
