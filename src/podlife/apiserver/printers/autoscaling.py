"""HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, columns, name
from podlife.apiserver.resource import Printer

_MOST_SHOWN = 2
_FIELDS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(metric: Object, state: Object) -> str:
    field = _FIELDS.get(metric.get("type", ""), "")
    if not field:
        return "<unknown type>"
    source, known = metric.get(field) or {}, state.get(field) or {}
    target, current = source.get("target") or {}, known.get("current") or {}
    prefix = f"{source.get('name', '')}: " if "esource" in field else ""
    if "averageValue" in target or field == "pods":
        suffix = " (avg)" if field in ("external", "object") else ""
        shown = current.get("averageValue", "<unknown>")
        return f"{prefix}{shown}/{target.get('averageValue', '0')}{suffix}"
    if not prefix:
        return f"{current.get('value', '<unknown>')}/{target.get('value', '0')}"
    percents = [each.get("averageUtilization") for each in (current, target)]
    shown, wanted = ("" if each is None else f"{each}%" for each in percents)
    return f"{prefix}{shown or '<unknown>'}/{wanted or '<auto>'}"


def _autoscaler(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    metrics, states = spec.get("metrics") or [], status.get("currentMetrics") or []
    shown = [
        _metric(metric, states[index] if index < len(states) else {})
        for index, metric in enumerate(metrics[:_MOST_SHOWN])
    ]
    more = f" + {len(metrics) - _MOST_SHOWN} more..." if len(metrics) > _MOST_SHOWN else ""
    target = spec.get("scaleTargetRef", {})
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        ", ".join(shown) + more or "<none>",
        str(spec.get("minReplicas", "<unset>")),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


AUTOSCALERS = Printer(columns("horizontalpodautoscalers.autoscaling"), _autoscaler)
