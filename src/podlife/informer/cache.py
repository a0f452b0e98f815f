"""The pure core of an informer: applies events to a cache and returns the notifications for handlers.

`apply` takes the events of `client.list_watch`. A list is merged by mark and sweep: each listed object is compared
and marked, and objects left unmarked at the end are deleted. No second copy of a list is held, and a list that breaks
off has no effect on the rest.

A watch event never replaces an object with an older revision, so repeated and late events change nothing. A list may,
because a server restored from a backup is authoritative as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from podlife.client.watch import Bookmark, EventType, WatchEvent
from podlife.informer.indexes import Indexer, Indexes, Key


class Identity(Protocol):
    """The metadata that identifies an object and its versions."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class HasMetadata(Protocol):
    """What an informer requires of a view; see `podlife.api.views`."""

    @property
    def metadata(self) -> Identity: ...


T = TypeVar("T", bound=HasMetadata)
T_co = TypeVar("T_co", covariant=True)


class Added(msgspec.Struct, Generic[T], frozen=True):
    object: T


class Updated(msgspec.Struct, Generic[T], frozen=True):
    old: T
    new: T


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """With the last known state."""

    object: T


Notification = Added[T] | Updated[T] | Deleted[T]


class CacheReader(Protocol[T_co]):
    """Read access to a cache. Returned collections are copies."""

    def get(self, namespace: str, name: str) -> T_co | None: ...
    def list(self) -> Collection[T_co]: ...
    def by_index(self, index: str, value: str) -> Collection[T_co]: ...
    def __len__(self) -> int: ...


class Cache(Generic[T]):
    def __init__(self, indexers: Mapping[str, Indexer[T]] | None = None) -> None:
        self._objects: dict[Key, T] = {}
        self._indexes: Indexes[T] = Indexes(indexers or {})
        # While a list is being merged: objects not listed yet.
        self._unmarked: set[Key] | None = None
        # The newest revision since the last list began; 0 if revisions are not numbers.
        self.revision = 0
        # Number of repeated or late watch events that were ignored.
        self.stale_events = 0

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    def list(self) -> Collection[T]:
        return tuple(self._objects.values())

    def by_index(self, index: str, value: str) -> Collection[T]:
        """The objects with this value in the index; raises KeyError for an unknown index."""
        return tuple(self._objects[key] for key in self._indexes.keys(index, value))

    def __len__(self) -> int:
        return len(self._objects)

    def begin_list(self) -> None:
        """The events up to the next synced Bookmark are a complete list."""
        self._unmarked = set(self._objects)
        self.revision = 0

    def apply(self, event: WatchEvent[T] | Bookmark) -> Sequence[Notification[T]]:
        if isinstance(event, Bookmark):
            return self._pass_bookmark(event)
        metadata = event.object.metadata
        key = (metadata.namespace, metadata.name)
        if self._unmarked is not None:
            self._unmarked.discard(key)
        elif self._is_past(event.resource_version):
            self.stale_events += 1
            return ()
        if event.type is EventType.DELETED:
            return self._delete(key, event.object)
        return self._put(key, event.object)

    def keep(self, namespace: str, name: str) -> None:
        """An object of this name exists but cannot be decoded: its last known state is kept."""
        if self._unmarked is not None:
            self._unmarked.discard((namespace, name))

    def drop(self, namespace: str, name: str, resource_version: str) -> Sequence[Notification[T]]:
        """The object was deleted, and its last state cannot be decoded."""
        if self._unmarked is None and self._is_past(resource_version):
            self.stale_events += 1
            return ()
        return self._delete((namespace, name), None)

    def _put(self, key: Key, new: T) -> Sequence[Notification[T]]:
        old = self._objects.get(key)
        if old is None:
            # The key shares the object's strings: it only costs the tuple.
            self._indexes.replace(key, None, new)
            self._objects[key] = new
            return (Added(new),)
        if _is_same_state(old.metadata, new.metadata):
            return ()
        self._indexes.replace(key, old, new)
        self._objects[key] = new
        if old.metadata.uid != new.metadata.uid:
            return (Deleted(old), Added(new))
        return (Updated(old, new),)

    def _delete(self, key: Key, last: T | None) -> Sequence[Notification[T]]:
        old = self._objects.get(key)
        if old is None:
            return ()
        self._indexes.replace(key, old, None)
        del self._objects[key]
        if last is None or last.metadata.uid != old.metadata.uid:
            last = old
        return (Deleted(last),)

    def _pass_bookmark(self, bookmark: Bookmark) -> Sequence[Notification[T]]:
        if not (bookmark.is_synced and self._unmarked is not None):
            # A late bookmark changes nothing.
            self._is_past(bookmark.resource_version)
            return ()
        gone, self._unmarked = self._unmarked, None
        self.revision = _number(bookmark.resource_version)
        # In insertion order, which a set does not keep.
        keys = [key for key in self._objects if key in gone] if gone else ()
        return [notification for key in keys for notification in self._delete(key, None)]

    def _is_past(self, resource_version: str) -> bool:
        """Whether the watch had already passed this revision; advances it otherwise."""
        revision = _number(resource_version)
        if 0 < revision < self.revision:
            return True
        self.revision = max(self.revision, revision)
        return False


def _number(resource_version: str) -> int:
    # Servers other than kube-apiserver may use any text; then the order is unknown.
    return int(resource_version) if resource_version.isdecimal() else 0


def _is_same_state(old: Any, new: Any) -> bool:
    return bool(
        old.uid == new.uid and old.resource_version == new.resource_version and new.resource_version != ""
    )
