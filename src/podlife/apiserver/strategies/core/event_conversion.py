"""Events are stored once, as core/v1 has them; events.k8s.io/v1 shows the same with newer names."""

from __future__ import annotations

from podlife.api.codec import Object

__all__ = ["from_core", "to_core"]

_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_NAMES = {new: old for old, new in _NEW_NAMES.items()}


def from_core(event: Object) -> Object:
    shown = {_NEW_NAMES.get(field, field): value for field, value in event.items()}
    for field in ("reportingController", "reportingInstance"):
        if not shown.get(field, True):
            del shown[field]
    return shown


def to_core(event: Object) -> Object:
    return {_OLD_NAMES.get(field, field): value for field, value in event.items()}
