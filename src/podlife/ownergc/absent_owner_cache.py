"""Owners that are known not to exist, so that the server is asked once per owner and not once per dependent.

UIDs are not reused, so an absent owner stays absent; but a cluster may be restored from a backup, and an owner that
is observed again is removed. The cache is bounded: an owner that was evicted is looked up again.
"""

from __future__ import annotations

from podlife.lru import LruCache
from podlife.ownergc.views import ObjectIdentity, PartialOwnerReference

_MOST = 500


class AbsentOwnerCache:
    def __init__(self, most: int = _MOST) -> None:
        self._identities = LruCache[ObjectIdentity, bool](most)

    def __len__(self) -> int:
        return len(self._identities)

    def add(self, identity: ObjectIdentity) -> None:
        self._identities.put(identity, True)

    def has(self, reference: PartialOwnerReference, namespace: str) -> bool:
        """Whether the owner that a dependent in this namespace refers to is absent, namespaced or not."""
        identities = {reference.identity(""), reference.identity(namespace)}
        return any(self._identities.get(identity) for identity in identities)

    def discard(self, identity: ObjectIdentity) -> None:
        self._identities.pop(identity)
