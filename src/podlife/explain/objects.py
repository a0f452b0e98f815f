"""What the diagnosis asks of API objects, which stay plain dictionaries: anything may be missing, nothing changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from podlife.api.codec import Object, parse_time
from podlife.clock import add_seconds


def metadata(obj: Object) -> Object:
    return obj.get("metadata") or {}


def spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def status(obj: Object) -> Object:
    return obj.get("status") or {}


def items(obj: Object, field: str) -> list[Any]:
    return obj.get(field) or []


def text(obj: Object, field: str) -> str:
    return str(obj.get(field) or "")


def label(pod: Object) -> str:
    return f"{text(metadata(pod), 'namespace')}/{text(metadata(pod), 'name')}"


def title(obj: Object, kind: str) -> str:
    return f"{kind.lower()}/{text(metadata(obj), 'name')}"


def moment(value: Any) -> datetime | None:
    """None for what is absent or no time: a strange object is explained as far as it can be."""
    try:
        return parse_time(value) if isinstance(value, str) and value else None
    except ValueError:
        return None


def condition(obj: Object, type_: str) -> Object:
    found: Iterable[Object] = items(status(obj), "conditions")
    return next((each for each in found if each.get("type") == type_), {})


def condition_since(obj: Object, type_: str) -> datetime | None:
    return moment(condition(obj, type_).get("lastTransitionTime"))


def is_terminating(obj: Object) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def has_ended(pod: Object) -> bool:
    return text(status(pod), "phase") in ("Succeeded", "Failed")


def grace_ends_at(pod: Object) -> datetime | None:
    """The server writes the end of the grace, not the moment of the request."""
    return moment(metadata(pod).get("deletionTimestamp"))


def deleted_at(obj: Object) -> datetime | None:
    """When the deletion was asked for."""
    ends_at = grace_ends_at(obj)
    grace = metadata(obj).get("deletionGracePeriodSeconds") or 0
    return None if ends_at is None else add_seconds(ends_at, -int(grace))


def controller_of(obj: Object) -> Object:
    owners: Iterable[Object] = items(metadata(obj), "ownerReferences")
    return next((owner for owner in owners if owner.get("controller")), {})


def all_statuses(pod: Object) -> Iterator[tuple[Object, bool]]:
    """Every container's status in the order of starting, and whether it is one of the beginning."""
    for each in items(status(pod), "initContainerStatuses"):
        yield each, True
    for each in items(status(pod), "containerStatuses"):
        yield each, False


def container_spec(pod: Object, name: str) -> Object:
    every = [*items(spec(pod), "initContainers"), *items(spec(pod), "containers")]
    return next((each for each in every if each.get("name") == name), {})


def updated(event: Object) -> datetime | None:
    """When an event last came about, in the old form or the new."""
    series = event.get("series") or {}
    return (
        moment(series.get("lastObservedTime"))
        or moment(event.get("lastTimestamp"))
        or moment(event.get("eventTime"))
        or moment(event.get("firstTimestamp"))
        or moment(metadata(event).get("creationTimestamp"))
    )
