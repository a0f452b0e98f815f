"""Events of both groups: core/v1 and events.k8s.io/v1 name the same things differently."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import since
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer


def _event(obj: Object, now: float) -> list[Any]:
    target: Object = _either(obj, "involvedObject", "regarding") or {}
    first, last, count = _occurrence(obj, now)
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        _target(target),
        target.get("fieldPath", ""),
        _source(obj),
        (_either(obj, "message", "note") or "").strip(),
        first,
        count,
        obj["metadata"].get("name", ""),
    ]


def _either(obj: Object, core_name: str, events_name: str) -> Any:
    return obj.get(core_name) or obj.get(events_name)


def _occurrence(obj: Object, now: float) -> tuple[str, str, int]:
    """When it was first and last seen, and how often. A series takes precedence over the older fields."""
    first_time = _either(obj, "firstTimestamp", "deprecatedFirstTimestamp") or obj.get("eventTime")
    first = since(first_time, now)
    if series := obj.get("series"):
        return first, since(series.get("lastObservedTime"), now), series.get("count", 0)
    last_time = _either(obj, "lastTimestamp", "deprecatedLastTimestamp")
    count = _either(obj, "count", "deprecatedCount") or 1
    return first, since(last_time, now) if last_time else first, count


def _target(target: Object) -> str:
    kind: str = target.get("kind", "").lower()
    return f"{kind}/{target['name']}" if target.get("name") else kind


def _source(obj: Object) -> str:
    source: Object = _either(obj, "source", "deprecatedSource") or {}
    controller = _either(obj, "reportingComponent", "reportingController")
    component: str = source.get("component") or controller or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENTS = Printer(columns("events"), _event)
