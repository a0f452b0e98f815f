"""HorizontalPodAutoscalers of v1: what v1 has no field for is in annotations, as JSON, as upstream has it.

v1 knows one percentage of CPU. All other metrics, the states of metrics, conditions and the behavior make a round trip
through annotations. Clients write them too: one that does not have the shape of its type is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from podlife.api import schema
from podlife.api.codec import Object, decode_object, encode, escape_as_go
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.autoscaling.autoscalers import (
    ANNOTATIONS,
    DEFAULT_METRICS,
    SOURCES,
    cpu_utilization,
    without_round_trip,
)

_METRICS, _BEHAVIOR, _STATES, _CONDITIONS = ANNOTATIONS[:4]
# Field of v1, and where its value is in v2, in the order in which Go writes them. `*` is `target` in a metric and
# `current` in its state.
_FIELDS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("*Value", "*.value"),
        ("selector", "metric.selector"),
        ("averageValue", "*.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"),
        ("*AverageValue", "*.averageValue"),
        ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"),
        ("*AverageUtilization", "*.averageUtilization"),
        ("*AverageValue", "*.averageValue"),
    ),
    "containerResource": (
        ("name", "name"),
        ("*AverageUtilization", "*.averageUtilization"),
        ("*AverageValue", "*.averageValue"),
        ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("*Value", "*.value"),
        ("*AverageValue", "*.averageValue"),
    ),
}
# No pointers in v1: written even if there is none.
_ALWAYS = {
    "target": {("object", "targetValue"), ("pods", "targetAverageValue")},
    "current": {
        ("object", "currentValue"),
        ("pods", "currentAverageValue"),
        ("resource", "currentAverageValue"),
        ("containerResource", "currentAverageValue"),
        ("external", "currentValue"),
    },
}
_RULES = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")


def to_v1(obj: Object) -> Object:
    """A stored autoscaler as v1 shows it; or a part of one, whose managers are compared."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, states = spec.get("metrics") or [], status.get("currentMetrics") or []
    others = [each for each in metrics if cpu_utilization([each], "target") is None]
    shown_status = {
        **{field: status[field] for field in ("observedGeneration", "lastScaleTime") if field in status},
        "currentReplicas": status.get("currentReplicas", 0),
        "desiredReplicas": status.get("desiredReplicas", 0),
    }
    percent, current = cpu_utilization(metrics, "target"), cpu_utilization(states, "current")
    shown = {
        field: spec[field] for field in ("scaleTargetRef", "minReplicas", "maxReplicas") if field in spec
    }
    if percent is not None:
        shown["targetCPUUtilizationPercentage"] = percent
    if current is not None:
        shown_status["currentCPUUtilizationPercentage"] = current
    texts = {
        _METRICS: others and _text([_metric_to_v1(each, "target") for each in others]),
        _STATES: states and _text([_metric_to_v1(each, "current") for each in states]),
        _BEHAVIOR: "behavior" in spec and _text(_behavior_to_go(spec["behavior"])),
        _CONDITIONS: status.get("conditions") and _text(status["conditions"]),
    }
    annotations = without_round_trip(obj["metadata"].get("annotations") or {})
    annotations |= {key: text for key, text in texts.items() if text}
    metadata = {**obj["metadata"], **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": shown, "status": shown_status}


def from_v1(obj: Object) -> Object:
    """An autoscaler of v1, which has passed the schema check, as it is stored."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    annotations = obj["metadata"].get("annotations") or {}
    percent = spec.pop("targetCPUUtilizationPercentage", None)
    current = status.pop("currentCPUUtilizationPercentage", None)
    metrics = _read(annotations, _METRICS, "spec", "metrics", _metrics_from_v1("target")) or []
    if percent is not None:
        metrics.append(_cpu({"type": "Utilization", "averageUtilization": percent}, "target"))
    spec["metrics"] = metrics or deepcopy(DEFAULT_METRICS)
    if behavior := _read(annotations, _BEHAVIOR, "spec", "behavior", _behavior_from_go):
        spec["behavior"] = behavior
    states = [_cpu({"averageUtilization": current}, "current")] if current is not None else None
    status["currentMetrics"] = (
        _read(annotations, _STATES, "status", "currentMetrics", _metrics_from_v1("current")) or states
    )
    if conditions := _read(annotations, _CONDITIONS, "status", "conditions", lambda value: value):
        status["conditions"] = conditions
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    # Their defaults drop the annotations.
    return {**obj, "spec": spec, "status": status}


def _cpu(value: Object, part: str) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", part: value}}


def _text(value: Any) -> str:
    return escape_as_go(encode(value)).decode()


def _metric_to_v1(metric: Object, part: str) -> Object:
    shown: Object = {"type": metric["type"]}
    for field in _FIELDS:
        if (source := metric.get(field)) is None:
            continue
        shown[field] = {}
        for name, path in _fields(field, part):
            value = _at(source, path)
            if value is None and (field, name) in _ALWAYS[part]:
                value = "0"
            if value is not None:
                shown[field][name] = value
    return shown


def _fields(field: str, part: str) -> Iterator[tuple[str, str]]:
    for name, path in _FIELDS[field]:
        yield name.replace("*", part), path.replace("*", part)


def _at(source: Object, path: str) -> Any:
    outer, _, inner = path.partition(".")
    value = source.get(outer)
    return (value or {}).get(inner) if inner else value


def _metrics_from_v1(part: str) -> Callable[[Iterable[Object]], list[Object]]:
    def convert(metrics: Iterable[Object]) -> list[Object]:
        return [_metric_from_v1(each, part) for each in metrics]

    return convert


def _metric_from_v1(metric: Object, part: str) -> Object:
    read: Object = {"type": metric.get("type", "")}
    for field in SOURCES.values():
        if (source := metric.get(field)) is None:
            continue
        made: Object = {part: {}}
        for name, path in _fields(field, part):
            outer, _, inner = path.partition(".")
            value = source.get(name, "0" if (field, name) in _ALWAYS[part] else None)
            if value is not None and inner:
                made.setdefault(outer, {})[inner] = value
            elif value is not None:
                made[outer] = value
        if part == "target":
            _set_target_type(field, made["target"])
        read[field] = made
    return read


def _set_target_type(field: str, target: Object) -> None:
    if field == "object" and "averageValue" in target and not parse_nanos(target["value"]):
        # v1 cannot leave it out.
        del target["value"]
    if "averageUtilization" in target:
        target["type"] = "Utilization"
    elif field == "object":
        target["type"] = "AverageValue" if "averageValue" in target else "Value"
    else:
        target["type"] = "Value" if "value" in target else "AverageValue"


def _behavior_to_go(behavior: Object) -> Object:
    """Upstream writes its internal type: Go's names, and null for what is not set."""
    return {_go(direction): _rules_to_go(behavior.get(direction)) for direction in ("scaleUp", "scaleDown")}


def _rules_to_go(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    shown = {_go(field): rules.get(field) for field in _RULES}
    if shown["Policies"] is not None:
        shown["Policies"] = [
            {_go(field): policy[field] for field in ("type", "value", "periodSeconds")}
            for policy in rules["policies"]
        ]
    return shown


def _go(name: str) -> str:
    return name[0].upper() + name[1:]


def _behavior_from_go(value: Any) -> Any:
    """Names in lower case again, without nulls."""
    if isinstance(value, list):
        return [_behavior_from_go(each) for each in value]
    if isinstance(value, dict):
        return {
            name[:1].lower() + name[1:]: _behavior_from_go(each)
            for name, each in value.items()
            if each is not None
        }
    return value


def _read(
    annotations: Mapping[str, str], key: str, part: str, field: str, convert: Callable[[Any], Any]
) -> Any:
    """The value of an annotation in the form of v2, or None if it has another shape."""
    if key not in annotations:
        return None
    try:
        value = convert(decode_object(b'{"it":%s}' % annotations[key].encode())["it"])
        obj: Object = {part: {field: value}}
        schema.check("autoscaling/v2", "HorizontalPodAutoscaler", obj)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    return obj.get(part, {}).get(field)
