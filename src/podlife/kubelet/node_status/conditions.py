"""The conditions of a node, with upstream's reasons and messages, and the events for their changes. Pure.

Conditions of other writers (NetworkUnavailable, node problem detector) are neither read nor changed. As upstream,
pressure keeps its first reason while it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object

READY = "Ready"
# For each condition: reason, message and event when it is true, and when it is false.
_PRESSURES = {
    "MemoryPressure": (
        (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
    ),
}


@dataclass(frozen=True, slots=True)
class Pressure:
    """The resources that a node lacks."""

    memory: bool = False
    disk: bool = False
    pid: bool = False


def ready_problem(problems: Iterable[str]) -> str:
    """Why a node is not ready, without duplicates; "" if it is ready."""
    texts = list(dict.fromkeys(each for each in problems if each))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def with_own_conditions(
    old: Sequence[Mapping[str, Any]], pressure: Pressure, problem: str, now: str
) -> tuple[list[Object], list[str]]:
    """The current conditions, and the reasons of events for their changes."""
    by_type = {each["type"]: each for each in old}
    events: list[str] = []
    shortages = (pressure.memory, pressure.disk, pressure.pid)
    for (type_, texts), is_short in zip(_PRESSURES.items(), shortages, strict=True):
        before = by_type.get(type_) or {}
        reason, message, event = texts[0 if is_short else 1]
        by_type[type_] = _condition(before, type_, is_short, reason, message, now)
        if before.get("status") != by_type[type_]["status"]:
            events.append(event)
        else:
            # Unchanged pressure keeps its first reason and message.
            by_type[type_] = {**before, "lastHeartbeatTime": now}
    before = by_type.get(READY) or {}
    reason, message = "KubeletReady", "kubelet is posting ready status"
    if problem:
        reason, message = "KubeletNotReady", problem
    by_type[READY] = _condition(before, READY, not problem, reason, message, now)
    if before and before.get("status") != by_type[READY]["status"]:
        events.append("NodeNotReady" if problem else "NodeReady")
    return [dict(each) for each in by_type.values()], events


def _condition(
    before: Mapping[str, Any], type_: str, is_true: bool, reason: str, message: str, now: str
) -> Object:
    status = "True" if is_true else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": type_,
        "status": status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": since or now,
        "reason": reason,
        "message": message,
    }
