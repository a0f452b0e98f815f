"""The statuses of a pod's containers, from the runtime's state and the last reported status (CS-01 to CS-08). Pure.

A container that ran and that the runtime has lost is reported as terminated, and no restart count decreases.
`pod_status` sets `ready` and `started`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from podlife.api.codec import Object, format_time
from podlife.kubelet.kuberuntime import StartFailure
from podlife.kubelet.kuberuntime.log_directory import LOG_BYTES, LOG_LINES
from podlife.kubelet.kuberuntime.resources import reported_resources
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    containers_of,
    init_containers_of,
    is_deleting,
    is_sidecar,
    state_of,
    status_by_name,
)
from podlife.kubelet.restart_policy import RESTARTING_ALL, should_start
from podlife.kubelet.runtime import ContainerState, ContainerStatus
from podlife.kubelet.status.terminated import STATUS_UNKNOWN, lost_state

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
_MESSAGE_BYTES = 4096

_GONE = "The container could not be located when the pod was deleted.  The container used to be Running"
_REMOVED = "The container is removed because RestartAllContainers in place"
_ASSUMED_COMPLETED = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)


@dataclass(frozen=True)
class PodObservation:
    """`runtime` is the scheme of container IDs; `logs` are log tails of failed containers, by ID; `resize` are the
    conditions of a resize."""

    pod: Pod
    observed: ObservedPod
    runtime: str
    start_failures: Mapping[str, StartFailure] = field(default_factory=dict)
    is_restarting_all: bool = False
    logs: Mapping[str, str] = field(default_factory=dict)
    resize: Sequence[Object] = ()


def container_statuses(
    seen: PodObservation,
    containers: Iterable[Container],
    old: Iterable[Mapping[str, Any]] | None,
    *,
    is_init: bool = False,
) -> list[Object]:
    """In the order of `containers`, which are all init, all regular or all ephemeral."""
    before = status_by_name(old)
    return [_status(seen, each, before.get(each["name"]), is_init=is_init) for each in containers]


def _status(
    seen: PodObservation, container: Container, old: Mapping[str, Any] | None, *, is_init: bool
) -> Object:
    instances = seen.observed.instances(container["name"])
    if instances:
        status = _instance_status(seen, container, instances[0], old)
        if len(instances) > 1:
            # The previous instance explains the restart (CS-06).
            status["lastState"] = _instance_status(seen, container, instances[1], old)["state"]
    else:
        status = _missing_status(seen, container, old)
    if is_init and _is_completed(seen, container, status, instances):
        return status
    return _with_start_failure(seen, container, status)


def _missing_status(seen: PodObservation, container: Container, old: Mapping[str, Any] | None) -> Object:
    """The status of a container that the runtime does not have."""
    reason = INITIALIZING if init_containers_of(seen.pod) else CREATING
    status: Object = {
        "name": container["name"],
        "image": container.get("image") or "",
        "imageID": "",
        "restartCount": 0,
        "ready": False,
        "state": {"waiting": {"reason": reason}},
        "lastState": {},
    }
    if old is None:
        return status
    kind, _ = state_of(old)
    count = int(old.get("restartCount") or 0)
    if seen.is_restarting_all and kind != "waiting":
        details = {"reason": RESTARTING_ALL, "message": _REMOVED}
        ended = {"terminated": {**details, "exitCode": 137}}
        return {**status, "restartCount": count + 1, "state": {"waiting": details}, "lastState": ended}
    if kind == "terminated":
        return dict(old)
    status.update(restartCount=count, lastState=old.get("lastState") or {})
    if kind == "running" and state_of(status, "lastState")[0] != "terminated":
        gone = {"reason": STATUS_UNKNOWN, "message": _GONE, "exitCode": 137}
        status["lastState"] = {"terminated": gone}
        # The pod is not being deleted, so this is a restart.
        status["restartCount"] = count + (not is_deleting(seen.pod))
    return status


def _instance_status(
    seen: PodObservation, container: Container, known: ContainerStatus, old: Mapping[str, Any] | None
) -> Object:
    """The status of one instance in the runtime."""
    container_id = f"{seen.runtime}://{known.id}"
    old = old or {}
    old_kind, old_state = state_of(old)
    old_count = int(old.get("restartCount") or 0)
    count = max(known.config.attempt, old_count)
    if (
        known.state is ContainerState.RUNNING
        and old_kind == "terminated"
        and old_count >= known.config.attempt
    ):
        count = old_count + 1
    is_lost = known.state is ContainerState.UNKNOWN and old_kind == "running"
    if is_lost:
        count = old_count + 1
    status: Object = {
        "name": container["name"],
        "image": known.config.image,
        "imageID": known.image_ref,
        "containerID": container_id,
        "restartCount": count,
        "ready": False,
        "state": lost_state(RESTARTING_ALL if seen.is_restarting_all else STATUS_UNKNOWN)
        if is_lost
        else _state(seen, container, known, container_id),
        "lastState": {},
        **_resources(container, known),
    }
    # A restart in place removes terminated containers, so their end is known only from the old status.
    if old_kind == "terminated" and old.get("containerID") != container_id:
        status["lastState"] = {"terminated": dict(old_state)}
    elif state_of(old, "lastState")[0] == "terminated":
        status["lastState"] = old["lastState"]
    is_same = old.get("containerID") == container_id
    if known.state is ContainerState.RUNNING and is_same and old.get("started") is not None:
        status["started"] = old["started"]
    return status


def _resources(container: Container, known: ContainerStatus) -> Object:
    """The container has its allocated resources; the runtime may not have made a resize yet."""
    allocated = (container.get("resources") or {}).get("requests")
    return {
        "resources": reported_resources(container, known),
        **({"allocatedResources": allocated} if allocated else {}),
    }


def _state(seen: PodObservation, container: Container, known: ContainerStatus, container_id: str) -> Object:
    match known.state:
        case ContainerState.RUNNING:
            return {"running": _times(startedAt=known.started_at)}
        case ContainerState.EXITED:
            return {
                "terminated": {
                    "exitCode": known.exit_code or 0,
                    "reason": known.reason,
                    "message": terminated_message(container, known, seen.logs.get(known.id, "")),
                    "containerID": container_id,
                    **_times(startedAt=known.started_at, finishedAt=known.finished_at),
                }
            }
        case _:
            return {"waiting": {}}


def _times(**times: datetime | None) -> Object:
    return {key: format_time(time) for key, time in times.items() if time is not None}


def _is_completed(
    seen: PodObservation, container: Container, status: Object, instances: list[ContainerStatus]
) -> bool:
    """Whether an init container has completed; a missing one has if a regular container exists (CS-04)."""
    if instances:
        return instances[0].state is ContainerState.EXITED and instances[0].exit_code == 0
    has_regular = any(each["name"] in seen.observed.newest for each in containers_of(seen.pod))
    if has_regular and not is_sidecar(container) and state_of(status)[0] == "waiting":
        details = {"reason": "Completed", "message": _ASSUMED_COMPLETED, "exitCode": 0}
        status["state"] = {"terminated": details}
        return True
    return False


def _with_start_failure(seen: PodObservation, container: Container, status: Object) -> Object:
    """Show why a container that should start could not; its termination moves to `lastState` (CS-07)."""
    failure = seen.start_failures.get(container["name"])
    newest = seen.observed.newest.get(container["name"])
    if failure is None or not should_start(seen.pod, container, newest):
        return status
    if state_of(status)[0] == "terminated":
        status["lastState"] = status["state"]
    waiting = {"reason": failure.reason}
    if failure.message:
        waiting["message"] = failure.message
    return {**status, "state": {"waiting": waiting}}


def is_log_needed(container: Container, known: ContainerStatus) -> bool:
    """Whether the container failed without a termination message and falls back to its log."""
    return (
        container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        and bool(known.exit_code)
        and not known.termination_message
    )


def terminated_message(container: Container, known: ContainerStatus, log: str = "") -> str:
    """The runtime's message, followed by the termination message or the log tail."""
    own = known.termination_message
    if is_log_needed(container, known):
        own = _last_bytes("".join(log.splitlines(keepends=True)[-LOG_LINES:]), LOG_BYTES)
    return ": ".join(each for each in (known.message, _last_bytes(own, _MESSAGE_BYTES)) if each)


def _last_bytes(text: str, bound: int) -> str:
    return text.encode("utf-8", "replace")[-bound:].decode("utf-8", "ignore")
