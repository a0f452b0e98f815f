"""What podlife's out-of-service controller recorded on a node: that it set the taint, and when. Pure.

Annotations can be written by anyone: the record counts only for the node with the UID in it, and the taint is the
controller's only if it was added at the time in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podlife.api.codec import Object, decode_object
from podlife.explain.audit_deletion import taint_setter
from podlife.explain.audit_log import AuditedRequest
from podlife.explain.audit_text import who_asked
from podlife.explain.cluster_snapshot import OUT_OF_SERVICE, taints_of
from podlife.explain.explanation import Happening
from podlife.explain.objects import metadata, moment, text

_ANNOTATION = "podlife.dev/out-of-service"
_BY = "podlife-out-of-service"
_TAINTED = "tainted"
_WORDS = {
    _TAINTED: "set out of service",
    "freed": "the out-of-service taint was taken off: nothing was left on it",
    "returned": "it had come back from being out of service",
}


def who_tainted(node: Object, audited: Sequence[AuditedRequest] = ()) -> str:
    """Who has set the out-of-service taint of the node, as far as that is written down."""
    record = _record(node)
    times = [moment(each.get("timeAdded")) for each in taints_of(node) if each.get("key") == OUT_OF_SERVICE]
    at = moment(record.get("at"))
    if text(record, "state") == _TAINTED and at is not None and at in times:
        return f"{_BY} at {at:%Y-%m-%d %H:%M:%SZ}, who takes it off again"
    setter = taint_setter(audited, text(metadata(node), "name"), OUT_OF_SERVICE)
    if setter is not None:
        return f"{who_asked(setter)} at {setter.at:%Y-%m-%d %H:%M:%SZ}, who has to take it off again"
    return "somebody, who has to take it off again"


def out_of_service_history(node: Object) -> Iterator[Happening]:
    record = _record(node)
    at, words = moment(record.get("at")), _WORDS.get(text(record, "state"))
    if at is not None and words is not None:
        yield Happening(at, words, _BY, "taint")


def _record(node: Object) -> Object:
    found = metadata(node)
    try:
        record = decode_object(text(found.get("annotations") or {}, _ANNOTATION).encode())
    except ValueError:
        return {}
    return record if (record.get("by"), record.get("uid")) == (_BY, found.get("uid")) else {}
