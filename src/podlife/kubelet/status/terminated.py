"""Terminated containers and pods in statuses. Pure.

A terminated container may run again only if its restart policy allows it (SM-06). In a pod's last status, a container
not known to have succeeded is reported as failed (SM-40 to SM-45).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    containers_of,
    exit_code,
    init_containers_of,
    is_sidecar,
    is_static,
    is_terminal_phase,
    state_of,
    status_by_name,
)
from podlife.kubelet.restart_policy import could_restart_all, is_restartable

STATUS_UNKNOWN = "ContainerStatusUnknown"
Status = Mapping[str, Any]


def lost_state(reason: str = STATUS_UNKNOWN) -> Object:
    """The state of a container that ran and whose termination was not observed."""
    return {
        "terminated": {
            "reason": reason,
            "message": "The container could not be located when the pod was terminated",
            "exitCode": 137,
        }
    }


def terminated_status(pod: Pod, status: Status) -> Object:
    """The pod's last status. `pod`, which may be newer than `status`, tells whether it was initialized."""
    result = dict(status)
    regular = status.get("containerStatuses")
    if regular and _was_initialized(pod):
        result["containerStatuses"] = [_as_terminated(each) for each in regular]
    if init := status.get("initContainerStatuses"):
        # All up to the last one that shows any sign of a start; at least one.
        tried = max((position for position, each in enumerate(init, 1) if _has_started(each)), default=1)
        result["initContainerStatuses"] = [*map(_as_terminated, init[:tried]), *init[tried:]]
    # As upstream, a static pod never reaches a terminal phase here.
    if not is_static(pod) and not is_terminal_phase(status.get("phase")):
        result["phase"] = "Failed"
    return result


def _as_terminated(status: Status) -> Object:
    is_known = state_of(status)[0] == "terminated"
    return dict(status) if is_known else {**status, "state": lost_state()}


def _was_initialized(pod: Pod) -> bool:
    specs = {each["name"]: each for each in init_containers_of(pod)}
    if not specs:
        return True
    status = pod.get("status") or {}
    if any(_has_started(each) for each in status.get("containerStatuses") or ()):
        return True
    init = status.get("initContainerStatuses")
    if not init or init[-1]["name"] not in specs:
        return False
    last = init[-1]
    if is_sidecar(specs[last["name"]]):
        return state_of(last)[0] == "running" and bool(last.get("started"))
    ends = (state_of(last, "lastState"), state_of(last))
    return any(kind == "terminated" and exit_code(state) == 0 for kind, state in ends)


def _has_started(status: Status) -> bool:
    return state_of(status)[0] != "waiting" or state_of(status, "lastState")[0] == "terminated"


def illegal_transition(pod: Pod, old: Status, new: Status) -> str | None:
    """An error message if the new status is not a legal successor of the old one."""
    if pod["spec"].get("restartPolicy") == "Always" or could_restart_all(pod):
        return None
    regular = _resumed(pod, containers_of(pod), old.get("containerStatuses"), new.get("containerStatuses"))
    for name in regular:
        return f"terminated container {name} attempted illegal transition to non-terminated state"
    init = [each for each in init_containers_of(pod) if not is_sidecar(each)]
    for name in _resumed(pod, init, old.get("initContainerStatuses"), new.get("initContainerStatuses")):
        return f"terminated init container {name} attempted illegal transition to non-terminated state"
    return None


def _resumed(
    pod: Pod, containers: Iterable[Container], old: Iterable[Status] | None, new: Iterable[Status] | None
) -> Iterator[str]:
    before, after = status_by_name(old), status_by_name(new)
    for container in containers:
        name = container["name"]
        kind, state = state_of(before.get(name, {}))
        if kind != "terminated" or name not in after or state_of(after[name])[0] == "terminated":
            continue
        code = exit_code(state)
        is_retried = code != 0 and pod["spec"].get("restartPolicy") == "OnFailure"
        if not is_retried and not is_restartable(pod, container, code):
            yield name


def newly_terminated(old: Status, new: Status) -> Iterator[tuple[str, int, str]]:
    """Type, exit code and reason of each container that terminated between the two statuses (SM-07)."""
    sorts = {
        "initContainerStatuses": "init_container",
        "containerStatuses": "container",
        "ephemeralContainerStatuses": "ephemeral_container",
    }
    for key, sort in sorts.items():
        before = status_by_name(old.get(key))
        for status in new.get(key) or ():
            kind, state = state_of(status)
            if kind == "terminated" and state_of(before.get(status["name"], {}))[0] != "terminated":
                yield sort, exit_code(state), str(state.get("reason") or "")
