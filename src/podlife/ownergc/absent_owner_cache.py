"""Owners that are known not to exist, so that the server is asked once per owner and not once per dependent.

UIDs are not reused, so an absent owner stays absent; but a cluster may be restored from a backup, and an owner that
is observed again is removed. The cache is bounded: an owner that was evicted is looked up again.
"""

from __future__ import annotations

from collections import OrderedDict

from podlife.ownergc.views import ObjectIdentity, PartialOwnerReference

_MOST = 500


class AbsentOwnerCache:
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._identities: OrderedDict[ObjectIdentity, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._identities)

    def add(self, identity: ObjectIdentity) -> None:
        self._identities[identity] = None
        self._identities.move_to_end(identity)
        if len(self._identities) > self._most:
            self._identities.popitem(last=False)

    def has(self, reference: PartialOwnerReference, namespace: str) -> bool:
        """Whether whom a dependent of this namespace refers to is absent, there or where there are no namespaces."""
        for identity in {reference.identity(""), reference.identity(namespace)}:
            if identity in self._identities:
                self._identities.move_to_end(identity)
                return True
        return False

    def discard(self, identity: ObjectIdentity) -> None:
        self._identities.pop(identity, None)
