"""Events. Both API groups store one kind of object, in the form of core/v1: strategies see no other."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import drop_empty, drop_empty_fields
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, required
from podlife.api.names import check_dns_subdomain, check_label_key, check_path_segment
from podlife.apiserver.strategies.field_checks import check_at, immutable
from podlife.apiserver.strategies.strategy import Strategy

# Fields that upstream shows even if they are empty.
_ALWAYS: Object = {
    "eventTime": None,
    "firstTimestamp": None,
    "involvedObject": {},
    "lastTimestamp": None,
    "reportingComponent": "",
    "reportingInstance": "",
    "source": {},
}
_LIMITS = (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))
_IMMUTABLE = (
    *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
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


class EventStrategy(Strategy):
    """Rules of core/v1: few, since many components already write events."""

    creates_on_update = True
    controller_field = "reportingComponent"
    validate_name = staticmethod(check_path_segment)

    def default(self, obj: Object) -> None:
        for field, empty in _ALWAYS.items():
            if not obj.get(field):
                obj[field] = dict(empty) if isinstance(empty, dict) else empty
        for field in ("involvedObject", "source"):
            drop_empty(obj[field], frozenset())
        drop_empty_fields(obj, "count", "reason", "message", "type", "action")

    def validate(self, obj: Object) -> list[FieldError]:
        namespace = obj["metadata"].get("namespace", "")
        involved = obj["involvedObject"].get("namespace", "")
        if obj["eventTime"] is None:
            expected = involved or "default"
            matches = namespace in ("", expected) if not involved else namespace == expected
            errors = [] if matches else [_mismatch(involved)]
        else:
            errors = [] if involved or namespace in ("default", "kube-system") else [_mismatch(involved)]
            errors += self._validate_report(obj)
        return errors + check_at("namespace", namespace, check_dns_subdomain)

    def _validate_report(self, obj: Object) -> list[FieldError]:
        """An event with an exact time must also name its reporter and the action."""
        controller = obj["reportingComponent"]
        errors = [] if controller else [required(self.controller_field)]
        errors += check_at(self.controller_field, controller, check_label_key)
        for field, limit in _LIMITS:
            value = obj.get(field, "")
            if not value and field != "message":
                errors.append(required(field))
            if len(value.encode()) > limit:
                errors.append(bad_value(field, "", f"can have at most {limit} characters"))
        return errors


def _mismatch(namespace: str) -> FieldError:
    return bad_value("involvedObject.namespace", namespace, "does not match event.namespace")


class EventsV1Strategy(EventStrategy):
    """Additional rules of events.k8s.io/v1. The object is in the core/v1 form."""

    controller_field = "reportingController"
    validate_name = staticmethod(check_dns_subdomain)

    def validate(self, obj: Object) -> list[FieldError]:
        errors = super().validate(obj)
        if obj["metadata"].get("resourceVersion"):
            return errors
        errors += _validate_series(obj)
        if obj["eventTime"] is None:
            errors.append(required("eventTime"))
        if (kind := obj.get("type", "")) not in ("Normal", "Warning"):
            errors.append(bad_value("type", "", f"has invalid value: {kind}"))
        for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if obj.get(field):
                errors.append(bad_value(field, "", "needs to be unset"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = list(_validate_series(new)) if new.get("series") != old.get("series") else []
        for field in _IMMUTABLE:
            shown = "reportingController" if field == "reportingComponent" else field
            errors += immutable(shown, new.get(field), old.get(field))
        return errors


def _validate_series(obj: Object) -> FieldErrors:
    if (series := obj.get("series")) is None:
        return
    if series.get("count", 0) < 2:
        yield bad_value("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


def from_core(event: Object) -> Object:
    """Convert a stored event to events.k8s.io/v1."""
    shown = {_NEW_NAMES.get(field, field): value for field, value in event.items()}
    drop_empty_fields(shown, "reportingController", "reportingInstance")
    return shown


def to_core(event: Object) -> Object:
    """Convert an events.k8s.io/v1 event to the stored form."""
    return {_OLD_NAMES.get(field, field): value for field, value in event.items()}
