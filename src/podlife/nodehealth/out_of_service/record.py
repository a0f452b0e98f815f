"""The annotation that records what the controller did to a node, written in one patch with the taint. Pure.

It identifies the controller's own taint: the one added at the time in the annotation, to the node with the UID in the
annotation. A taint set by a person has another time, and an annotation restored from a backup has another UID, so no
other taint is mistaken for the controller's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from podlife.api.codec import Object, decode_object, encode, format_time, parse_time
from podlife.nodehealth.taints import NO_EXECUTE
from podlife.nodehealth.views import NodeTaint

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
VALUE = "nodeshutdown"
BY = "podlife-out-of-service"


class RecordState(StrEnum):
    TAINTED = "tainted"
    # Nothing was left on it, and the taint was removed while it was still not ready.
    FREED = "freed"
    # It has come back: the cool-down starts.
    RETURNED = "returned"


class TaintOwner(StrEnum):
    NONE = "none"
    OURS = "podlife"
    OTHER = "others"


@dataclass(frozen=True, slots=True)
class TaintRecord:
    state: RecordState
    # Whole seconds, as in Kubernetes' timestamps.
    at: datetime
    uid: str

    def text(self) -> str:
        fields = {"by": BY, "state": self.state.value, "at": format_time(self.at), "uid": self.uid}
        return encode(fields).decode()


def read_record(text: str | None, uid: str) -> TaintRecord | None:
    """Parse the annotation; None if the controller did not write it for the node with this UID."""
    if not text:
        return None
    try:
        fields = decode_object(text.encode())
        if fields.get("by") != BY or fields.get("uid") != uid:
            return None
        return TaintRecord(RecordState(fields["state"]), parse_time(fields["at"]), uid)
    except (KeyError, TypeError, ValueError):
        return None


def made_taint(at: datetime) -> Object:
    return {"key": OUT_OF_SERVICE, "value": VALUE, "effect": NO_EXECUTE, "timeAdded": format_time(at)}


def taint_owner(taints: Iterable[NodeTaint], record: TaintRecord | None) -> TaintOwner:
    """If a node has the controller's taint and another one, the controller's counts."""
    found = [each for each in taints if each.key == OUT_OF_SERVICE]
    if any(our_taint(each, record) for each in found):
        return TaintOwner.OURS
    return TaintOwner.OTHER if found else TaintOwner.NONE


def our_taint(taint: NodeTaint, record: TaintRecord | None) -> bool:
    if record is None or record.state is not RecordState.TAINTED or taint.time_added is None:
        return False
    if (taint.key, taint.value, taint.effect) != (OUT_OF_SERVICE, VALUE, NO_EXECUTE):
        return False
    try:
        return parse_time(taint.time_added) == record.at
    except ValueError:
        return False
