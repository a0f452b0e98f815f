"""Whether a cache has caught up with what its controller wrote itself.

A controller that decides from a cache older than its own last write would decide the same again. So each write notes
the revision that the server gave it, and a key is left alone until the cache of that resource has come so far: a watch
brings every change in order, and bookmarks where there is none. Revisions that are no numbers are not waited for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

from podlife.client import Ref

__all__ = ["OwnWrites"]


class _Followed(Protocol):
    @property
    def revision(self) -> int: ...


class OwnWrites:
    """`followed` are the informers by what they follow; a write to anything else is not waited for."""

    def __init__(self, followed: Mapping[Ref, _Followed]) -> None:
        self._followed = followed
        self._written: dict[Hashable, dict[Ref, int]] = {}

    def note(self, key: Hashable, ref: Ref, written: Mapping[str, Any]) -> None:
        """The server has answered with this object."""
        version = (written.get("metadata") or {}).get("resourceVersion") or ""
        if ref in self._followed and version.isdecimal():
            revisions = self._written.setdefault(key, {})
            revisions[ref] = max(int(version), revisions.get(ref, 0))

    def is_seen(self, key: Hashable) -> bool:
        """Whether all that was written for the key has come back."""
        revisions = self._written.get(key)
        if revisions is None:
            return True
        if any(self._followed[ref].revision < revision for ref, revision in revisions.items()):
            return False
        del self._written[key]
        return True

    def forget(self, key: Hashable) -> None:
        self._written.pop(key, None)
