"""Whether a cache has caught up with the writes of its own controller.

A controller that decides from a cache older than its last write would repeat the decision. Each write therefore
records the resourceVersion that the server returned, and its key is not reconciled until the cache has reached it: a
watch delivers changes in order, and bookmarks in between. Versions that are not numbers are ignored. A list
that started after the write contains it whatever its version: a server restored from a backup continues with lower
versions, and no key may wait for the lost ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from podlife.client import Ref


class _Stats(Protocol):
    @property
    def lists(self) -> int: ...


class _Followed(Protocol):
    @property
    def revision(self) -> int: ...

    @property
    def stats(self) -> _Stats: ...


@dataclass(frozen=True, slots=True)
class _Write:
    revision: int
    # Number of lists begun before the write.
    lists: int

    def is_seen(self, informer: _Followed) -> bool:
        # A list in progress has no revision yet.
        is_listed = informer.stats.lists > self.lists and informer.revision > 0
        return is_listed or informer.revision >= self.revision


class OwnWrites:
    """`followed` are the informers by resource; writes to other resources are ignored."""

    def __init__(self, followed: Mapping[Ref, _Followed]) -> None:
        self._followed = followed
        self._written: dict[Hashable, dict[Ref, _Write]] = {}

    def note(self, key: Hashable, ref: Ref, written: Mapping[str, Any]) -> None:
        """Record the object that the server returned for a write."""
        version = (written.get("metadata") or {}).get("resourceVersion") or ""
        if ref in self._followed and version.isdecimal():
            writes = self._written.setdefault(key, {})
            if ref not in writes or writes[ref].revision < int(version):
                writes[ref] = _Write(int(version), self._followed[ref].stats.lists)

    def is_seen(self, key: Hashable) -> bool:
        """Whether the caches contain all writes for the key."""
        writes = self._written.get(key)
        if writes is None:
            return True
        if not all(write.is_seen(self._followed[ref]) for ref, write in writes.items()):
            return False
        del self._written[key]
        return True

    def forget(self, key: Hashable) -> None:
        self._written.pop(key, None)
