"""What a store holds: keys, records, changes and events, and the errors of a store.

Values are opaque bytes. They are encoded with their own revision when written (`encode(revision)`), so that the bytes
in the store are the bytes on the wire.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from podlife.errors import PodlifeError

DISK_FULL = "the disk is full"


class StoreError(PodlifeError):
    """The store could not keep a change (a full or failing disk). None of it was kept; reads continue."""


class StoreFullError(StoreError):
    """The disk is too full for the change."""


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
    """Key of an object, as `deployments.apps`; the namespace of a cluster-scoped object is empty."""

    resource: str
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The part that orders a list, as in etcd: `namespace/name`, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(slots=True, eq=False, repr=False)
class Record:
    """One stored version of an object. Immutable; `cache` is for values that are costly to derive from it."""

    key: Key
    revision: int
    value: bytes
    cache: object = None


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
    """Write the value under the key, which must be at revision `expected`; 0 means it must not exist."""

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

Row = tuple[int, str, str, str, int, int, bytes]
"""A change as stored: revision, resource, namespace, name, whether deleted, previous revision, value."""


class Batch:
    """What one call of `Subscription.next` returns: a run of events, shared by all readers of the same run.

    `frames` lets subscribers share what they encode of the whole run, by format; `groups` lets those that each select
    one value of a field share the work of sorting the run by it; `views` has the run as other versions show it.
    """

    __slots__ = ("events", "frames", "groups", "views")

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.frames: dict[object, bytes] = {}
        self.groups: dict[object, dict[str, list[Event]]] = {}
        self.views: dict[object, Future[Batch]] = {}
