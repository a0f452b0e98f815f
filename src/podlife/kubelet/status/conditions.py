"""The pod conditions written by the kubelet (SM-60 to SM-62), without times. Pure.

`normalize` sets `lastTransitionTime`; conditions of other writers are never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import (
    Pod,
    condition_of,
    containers_of,
    init_containers_of,
    is_sidecar,
    state_of,
    status_by_name,
)

DISRUPTION_TARGET = "DisruptionTarget"
_OWNED = frozenset(
    (
        "PodScheduled",
        "Ready",
        "Initialized",
        "ContainersReady",
        "PodResizeInProgress",
        "PodResizePending",
        "PodReadyToStartContainers",
        "AllContainersRestarting",
    )
)
_TERMINAL_REASONS = {"Failed": "PodFailed", "Succeeded": "PodCompleted"}

Statuses = Sequence[Mapping[str, Any]]


def is_owned_by_kubelet(type_: str) -> bool:
    """False for DisruptionTarget, which other components write too."""
    return type_ in _OWNED


def is_written_by_kubelet(type_: str) -> bool:
    return type_ in _OWNED or type_ == DISRUPTION_TARGET


def condition(pod: Pod, type_: str, is_true: bool, reason: str = "", message: str = "") -> Object:
    made: Object = {"type": type_, "status": "True" if is_true else "False"}
    if generation := pod["metadata"].get("generation"):
        made["observedGeneration"] = generation
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def _names(text: str, names: Sequence[str]) -> list[str]:
    return [f"{text}: [{' '.join(names)}]"] if names else []


def containers_ready(pod: Pod, statuses: Statuses | None, phase: str) -> Object:
    """True if every regular container and every sidecar is ready (SM-60)."""
    if statuses is None:
        return condition(pod, "ContainersReady", False, "UnknownContainerStatuses")
    by_name = status_by_name(statuses)
    wanted = [*filter(is_sidecar, init_containers_of(pod)), *containers_of(pod)]
    unknown = [each["name"] for each in wanted if each["name"] not in by_name]
    unready = [each["name"] for each in wanted if not by_name.get(each["name"], {"ready": True}).get("ready")]
    if phase == "Failed" or (phase == "Succeeded" and not unknown):
        return not_ready_terminal(pod, "ContainersReady", phase)
    problems = [
        *_names("containers with unknown status", unknown),
        *_names("containers with unready status", unready),
    ]
    if problems:
        return condition(pod, "ContainersReady", False, "ContainersNotReady", ", ".join(problems))
    return condition(pod, "ContainersReady", True)


def not_ready_terminal(pod: Pod, type_: str, phase: str) -> Object:
    """Ready or ContainersReady of a pod in a terminal phase."""
    return condition(pod, type_, False, _TERMINAL_REASONS[phase])


def ready(pod: Pod, conditions: Iterable[Mapping[str, Any]], statuses: Statuses | None, phase: str) -> Object:
    """True if the containers are ready and every readiness gate is true (SM-61)."""
    containers = containers_ready(pod, statuses, phase)
    if containers["status"] != "True":
        return {**containers, "type": "Ready"}
    by_type = {each["type"]: each for each in conditions}
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        type_ = gate["conditionType"]
        if type_ not in by_type:
            problems.append(f'corresponding condition of pod readiness gate "{type_}" does not exist.')
        elif (status := by_type[type_].get("status")) != "True":
            problems.append(f'the status of pod readiness gate "{type_}" is not "True", but {status}')
    if problems:
        return condition(pod, "Ready", False, "ReadinessGatesNotReady", ", ".join(problems))
    return condition(pod, "Ready", True)


def initialized(pod: Pod, old_status: Mapping[str, Any], statuses: Statuses | None, phase: str) -> Object:
    """True once every init container has completed or started, and from then on (SM-62)."""
    wanted = init_containers_of(pod)
    if statuses is None and wanted:
        return condition(pod, "Initialized", False, "UnknownContainerStatuses")
    by_name = status_by_name(statuses)
    unknown = [each["name"] for each in wanted if each["name"] not in by_name]
    incomplete = [
        each["name"]
        for each in wanted
        if each["name"] in by_name
        and not by_name[each["name"]].get("started" if is_sidecar(each) else "ready")
    ]
    if phase == "Succeeded" and not unknown:
        return condition(pod, "Initialized", True, "PodCompleted")
    was = condition_of(old_status, "Initialized") or {}
    states = (state_of(by_name.get(each["name"], {}))[0] for each in containers_of(pod))
    has_been = was.get("status") == "True" or any(each in ("running", "terminated") for each in states)
    problems = [
        *_names("containers with unknown status", unknown),
        *_names("containers with incomplete status", incomplete),
    ]
    if problems and not has_been:
        return condition(pod, "Initialized", False, "ContainersNotInitialized", ", ".join(problems))
    return condition(pod, "Initialized", True)


def all_containers_restarting(pod: Pod, phase: str, *, is_restarting: bool) -> Object:
    """For a pod with a rule that restarts all containers. As upstream, without observedGeneration."""
    if phase in _TERMINAL_REASONS:
        return {"type": "AllContainersRestarting", "status": "False", "reason": _TERMINAL_REASONS[phase]}
    if not is_restarting:
        return {"type": "AllContainersRestarting", "status": "False"}
    return {
        "type": "AllContainersRestarting",
        "status": "True",
        "reason": "RestartAllContainersStarted",
        "message": "container exited with restart policy rule",
    }


def with_condition(conditions: Iterable[Mapping[str, Any]], condition: Mapping[str, Any]) -> list[Object]:
    """Replace the condition of the same type, or append."""
    result = [dict(each) for each in conditions]
    for index, each in enumerate(result):
        if each["type"] == condition["type"]:
            result[index] = dict(condition)
            return result
    return [*result, dict(condition)]
