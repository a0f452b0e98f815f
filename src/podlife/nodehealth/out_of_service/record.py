"""What we keep on a node of what we did to it: one annotation, written in the same patch as the taint. Pure.

It says which taint is ours: the one that was added at the very moment which the annotation names, to the node with the
UID that it names. A taint that a person sets has no such moment, and an annotation that came to another node with a
backup has another UID. So nothing of anybody else's is ever taken for ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from podlife.api.codec import Object, decode_object, encode, format_time, parse_time
from podlife.nodehealth.taints import NO_EXECUTE
from podlife.nodehealth.views import Taint

__all__ = [
    "BY",
    "OUT_OF_SERVICE",
    "VALUE",
    "Record",
    "State",
    "Whose",
    "made_taint",
    "our_taint",
    "read_record",
    "whose",
]

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
VALUE = "nodeshutdown"
BY = "podlife-out-of-service"


class State(StrEnum):
    TAINTED = "tainted"
    # Nothing was left on it, and the taint was taken off while it was still not ready.
    FREED = "freed"
    # It has come back: from then on it is left alone for a while.
    RETURNED = "returned"


class Whose(StrEnum):
    NOBODYS = "nobody's"
    OURS = "ours"
    SOMEBODY_ELSES = "somebody else's"


@dataclass(frozen=True, slots=True)
class Record:
    state: State
    # To the second, as Kubernetes keeps it.
    at: datetime
    uid: str

    def text(self) -> str:
        fields = {"by": BY, "state": self.state.value, "at": format_time(self.at), "uid": self.uid}
        return encode(fields).decode()


def read_record(text: str | None, uid: str) -> Record | None:
    """What the annotation of the node with this UID says; nothing where it is not one that we wrote for it."""
    if not text:
        return None
    try:
        fields = decode_object(text.encode())
        if fields.get("by") != BY or fields.get("uid") != uid:
            return None
        return Record(State(fields["state"]), parse_time(fields["at"]), uid)
    except (KeyError, TypeError, ValueError):
        return None


def made_taint(at: datetime) -> Object:
    return {"key": OUT_OF_SERVICE, "value": VALUE, "effect": NO_EXECUTE, "timeAdded": format_time(at)}


def whose(taints: Iterable[Taint], record: Record | None) -> Whose:
    """Of a node that has one of ours and one of somebody else's, ours is the one to look after."""
    found = [each for each in taints if each.key == OUT_OF_SERVICE]
    if any(our_taint(each, record) for each in found):
        return Whose.OURS
    return Whose.SOMEBODY_ELSES if found else Whose.NOBODYS


def our_taint(taint: Taint, record: Record | None) -> bool:
    if record is None or record.state is not State.TAINTED or taint.time_added is None:
        return False
    if (taint.key, taint.value, taint.effect) != (OUT_OF_SERVICE, VALUE, NO_EXECUTE):
        return False
    try:
        return parse_time(taint.time_added) == record.at
    except ValueError:
        return False
