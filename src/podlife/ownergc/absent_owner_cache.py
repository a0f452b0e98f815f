"""Owners that are known not to exist, so that the server is asked about each once and not once per dependent.

A UID does not come back, so what is absent stays absent; but a cluster may be restored from a backup, and an owner that
is seen again is taken out. The memory has a bound: what was forgotten is asked again.
"""

from __future__ import annotations

from collections import OrderedDict

from podlife.ownergc.views import Identity, OwnerReference

__all__ = ["AbsentOwners"]

_MOST = 500


class AbsentOwners:
    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._identities: OrderedDict[Identity, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._identities)

    def add(self, identity: Identity) -> None:
        self._identities[identity] = None
        self._identities.move_to_end(identity)
        if len(self._identities) > self._most:
            self._identities.popitem(last=False)

    def has(self, reference: OwnerReference, namespace: str) -> bool:
        """Whether whom a dependent of this namespace refers to is absent, there or where there are no namespaces."""
        for identity in {reference.identity(""), reference.identity(namespace)}:
            if identity in self._identities:
                self._identities.move_to_end(identity)
                return True
        return False

    def discard(self, identity: Identity) -> None:
        self._identities.pop(identity, None)
