"""The conditions of a node, with a kubelet's reasons and messages, and the events that tell of their changes.

Pure. Conditions of others (NetworkUnavailable, those of a problem detector) are neither read nor touched. A shortage
keeps the reason it was first told with for as long as it lasts, as with a kubelet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object

READY = "Ready"
# Of each condition: when it is true and when it is not, reason, message and event.
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
    """What a node is short of."""

    memory: bool = False
    disk: bool = False
    pid: bool = False


def ready_problem(problems: Iterable[str]) -> str:
    """Why a node is not ready, in one text: each problem once; "" where there is none."""
    said = list(dict.fromkeys(each for each in problems if each))
    return said[0] if len(said) == 1 else f"[{', '.join(said)}]" if said else ""


def with_own_conditions(
    old: Sequence[Mapping[str, Any]], pressure: Pressure, problem: str, now: str
) -> tuple[list[Object], list[str]]:
    """The conditions as they are now, and the reasons of the events that this change is worth."""
    found = {each["type"]: each for each in old}
    events: list[str] = []
    for (type_, texts), is_short in zip(
        _PRESSURES.items(), (pressure.memory, pressure.disk, pressure.pid), strict=True
    ):
        before = found.get(type_)
        found[type_] = _pressure(before, type_, texts, is_short, now)
        if before is None or before.get("status") != found[type_]["status"]:
            events.append(texts[0 if is_short else 1][2])
    before = found.get(READY)
    found[READY] = _ready(before, problem, now)
    if before is not None and before.get("status") != found[READY]["status"]:
        events.append("NodeNotReady" if problem else "NodeReady")
    return [dict(each) for each in found.values()], events


def _pressure(
    before: Mapping[str, Any] | None,
    type_: str,
    texts: Sequence[tuple[str, str, str]],
    is_short: bool,
    now: str,
) -> Object:
    status = "True" if is_short else "False"
    if before is not None and before.get("status") == status:
        return {**before, "lastHeartbeatTime": now}
    reason, message, _ = texts[0 if is_short else 1]
    return {
        "type": type_,
        "status": status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def _ready(before: Mapping[str, Any] | None, problem: str, now: str) -> Object:
    status = "False" if problem else "True"
    is_same = before is not None and before.get("status") == status
    return {
        "type": READY,
        "status": status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": (before or {}).get("lastTransitionTime") or now if is_same else now,
        "reason": "KubeletNotReady" if problem else "KubeletReady",
        "message": problem or "kubelet is posting ready status",
    }
