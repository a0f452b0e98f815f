"""Pods and PodDisruptionBudgets.

The STATUS of a pod is not a field: it is derived from the containers, and the last rule that applies wins. First
comes the pod's own reason, then its init containers, then its containers, then its deletion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from podlife.api.codec import Object
from podlife.api.durations import human_duration
from podlife.apiserver.printers.cells import age, columns, condition_status, epoch, name
from podlife.apiserver.resource import Printer

_NO_STATE: Object = {}
_COMPLETED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


@dataclass(slots=True)
class _Restarts:
    """Number of restarts, and when the last terminated container ended."""

    count: int = 0
    last: float = 0.0

    def add(self, container: Object) -> None:
        self.count += container.get("restartCount", 0)
        ended = container.get("lastState", _NO_STATE).get("terminated", _NO_STATE).get("finishedAt")
        if ended:
            self.last = max(self.last, epoch(ended))

    def text(self, now: float) -> str:
        if self.count and self.last:
            return f"{self.count} ({human_duration(now - self.last)} ago)"
        return str(self.count)


@dataclass(slots=True)
class _Summary:
    reason: str
    ready: int = 0
    restarts: _Restarts = field(default_factory=_Restarts)


def _pod(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    sidecars = _sidecars(spec)
    summary = _summarize(obj, sidecars)
    ips = status.get("podIPs", ())
    return [
        name(obj),
        f"{summary.ready}/{len(spec.get('containers', ())) + len(sidecars)}",
        summary.reason,
        summary.restarts.text(now),
        age(obj, now),
        (ips[0].get("ip") if ips else "") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _readiness_gates(obj),
    ]


def _summarize(obj: Object, sidecars: frozenset[str]) -> _Summary:
    status = obj.get("status", {})
    summary = _Summary(_own_reason(status))
    sidecar_restarts = _Restarts()
    initializing = _read_init_containers(obj, sidecars, summary, sidecar_restarts)
    if not initializing or condition_status(obj, "Initialized") == "True":
        # Once a pod runs, restarts of its init containers no longer matter.
        summary.restarts = sidecar_restarts
        _read_containers(obj, summary)
    if obj["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif status.get("phase") not in _COMPLETED:
            summary.reason = "Terminating"
    return summary


def _sidecars(spec: Object) -> frozenset[str]:
    """Names of restartable init containers, which count as containers of the pod."""
    return frozenset(
        container["name"]
        for container in spec.get("initContainers", ())
        if container.get("restartPolicy") == "Always"
    )


def _own_reason(status: Object) -> str:
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _read_init_containers(
    obj: Object, sidecars: frozenset[str], summary: _Summary, sidecar_restarts: _Restarts
) -> bool:
    """Read the init containers up to the first incomplete one; returns whether there is one."""
    total = len(obj.get("spec", {}).get("initContainers", ()))
    for index, container in enumerate(obj.get("status", {}).get("initContainerStatuses", ())):
        summary.restarts.add(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            sidecar_restarts.add(container)
        terminated = container.get("state", _NO_STATE).get("terminated")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if is_sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        summary.reason = _init_reason(container, f"{index}/{total}")
        return True
    return False


def _init_reason(container: Object, progress: str) -> str:
    state = container.get("state", _NO_STATE)
    if (terminated := state.get("terminated")) is not None:
        return f"Init:{_end_reason(terminated)}"
    waiting = state.get("waiting", _NO_STATE).get("reason", "")
    return f"Init:{progress if waiting in ('', 'PodInitializing') else waiting}"


def _end_reason(terminated: Object) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _read_containers(obj: Object, summary: _Summary) -> None:
    """Read the containers from the last to the first, so that the first takes precedence."""
    running = False
    failure = ""
    statuses: Sequence[Object] = obj.get("status", {}).get("containerStatuses", ())
    for container in reversed(statuses):
        summary.restarts.add(container)
        state = container.get("state", _NO_STATE)
        if waiting := state.get("waiting", _NO_STATE).get("reason"):
            summary.reason = waiting
        elif (terminated := state.get("terminated")) is not None:
            summary.reason = _end_reason(terminated)
            failure = summary.reason if terminated.get("exitCode", 0) else failure
        elif container.get("ready") and "running" in state:
            running = True
            summary.ready += 1
    if summary.reason == "Completed":
        summary.reason = _completed_reason(obj, running=running, failure=failure)


def _completed_reason(obj: Object, *, running: bool, failure: str) -> str:
    """Status of a pod with a completed container, which depends on the other containers."""
    conditions = obj.get("status", {}).get("conditions", ())
    # Any condition counts, unlike elsewhere: a type may stand there twice.
    if running and any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return "Running"
    if failure:
        return failure
    return "NotReady" if running else "Completed"


def _readiness_gates(obj: Object) -> str:
    gates = obj.get("spec", {}).get("readinessGates", ())
    if not gates:
        return "<none>"
    passed = sum(condition_status(obj, gate.get("conditionType", "")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


def _conditions(obj: Object) -> list[Object]:
    phase = obj.get("status", {}).get("phase", "")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _budget(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    return [
        name(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        obj.get("status", {}).get("disruptionsAllowed", 0),
        age(obj, now),
    ]


PODS = Printer(columns("pods"), _pod, _conditions)
POD_DISRUPTION_BUDGETS = Printer(columns("poddisruptionbudgets.policy"), _budget)
