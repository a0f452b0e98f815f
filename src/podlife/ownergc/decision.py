"""What happens to an object, given the state of its owners. Pure.

An owner is solid (it exists), dangling (it does not, and its UID will not return), or waiting (it is being deleted in
the foreground and waits for this object). An object with a solid owner is kept and loses its references to the
others. Without one it is deleted: in the foreground if its own dependents must go first, otherwise according to its
finalizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from podlife.ownergc.views import FOREGROUND, ORPHAN, PartialMetadata


class OwnerState(Enum):
    SOLID = auto()
    ABSENT = auto()
    WAITING = auto()


@dataclass(frozen=True, slots=True)
class Leave:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class DropReferences:
    """Keep the object and remove these owners, by UID, from its references."""

    uids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """`unblocks`: first stop blocking its owners, since it may be part of a cycle that waits for itself."""

    policy: str
    unblocks: bool = False


Action = Leave | DropReferences | DeleteObject


@dataclass(frozen=True, slots=True)
class Family:
    """What the decision needs to know about an object's dependents."""

    has_dependents: bool = False
    has_waiting_dependents: bool = False


def decide(item: PartialMetadata, standings: Sequence[OwnerState], family: Family) -> Action:
    """`standings` are the states of the item's owners, in the order of its references."""
    if item.is_being_deleted or not item.owner_references:
        # Deletion cannot be undone; its dependents are examined when it has ended.
        return Leave()
    found = [
        (reference.uid, standing)
        for reference, standing in zip(item.owner_references, standings, strict=True)
    ]
    solid = {uid for uid, standing in found if standing is OwnerState.SOLID}
    if solid:
        # A waiting owner would wait forever for an object that stays, so its reference is removed too. An owner that is
        # referenced twice, once wrongly, keeps both: they have the same UID.
        others = tuple(dict.fromkeys(uid for uid, _ in found if uid not in solid))
        return DropReferences(others) if others else Leave()
    if family.has_dependents and OwnerState.WAITING in standings:
        return DeleteObject("Foreground", unblocks=family.has_waiting_dependents)
    if ORPHAN in item.finalizers:
        return DeleteObject("Orphan")
    return DeleteObject("Foreground" if FOREGROUND in item.finalizers else "Background")
