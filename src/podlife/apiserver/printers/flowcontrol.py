"""FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age, columns, condition_status, name
from podlife.apiserver.resource import Printer

_NONE = "<none>"


def _flow_schema(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    return [
        name(obj),
        spec.get("priorityLevelConfiguration", {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", _NONE),
        age(obj, now),
        condition_status(obj, "Dangling") or "?",
    ]


def _priority_level(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    limited = spec.get("limited") or {}
    queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
    numbers = [queuing.get(field, _NONE) for field in ("queues", "handSize", "queueLengthLimit")]
    return [
        name(obj),
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", _NONE),
        *numbers,
        age(obj, now),
    ]


FLOW_SCHEMAS = Printer(columns("flowschemas.flowcontrol.apiserver.k8s.io"), _flow_schema)
PRIORITY_LEVEL_CONFIGURATIONS = Printer(
    columns("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"), _priority_level
)
