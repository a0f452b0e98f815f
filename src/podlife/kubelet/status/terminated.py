"""The last status of a pod: what is not known to have succeeded is reported as a failure (SM-40 to SM-45). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.kubelet.pod_fields import (
    Pod,
    exit_code,
    init_containers_of,
    is_sidecar,
    is_static,
    is_terminal_phase,
    state_of,
)

STATUS_UNKNOWN = "ContainerStatusUnknown"
Status = Mapping[str, Any]


def lost_state(reason: str = STATUS_UNKNOWN) -> Object:
    """Of a container that ran, and of whose end nothing is known."""
    return {
        "terminated": {
            "reason": reason,
            "message": "The container could not be located when the pod was terminated",
            "exitCode": 137,
        }
    }


def terminated_status(pod: Pod, status: Status) -> Object:
    """The status from now on. Whether the pod was initialized is read from the pod object itself, whatever `status`
    says: the two may be of different times."""
    result = dict(status)
    regular = status.get("containerStatuses")
    if regular and _was_initialized(pod):
        result["containerStatuses"] = [_ended(each) for each in regular]
    if init := status.get("initContainerStatuses"):
        tried = _tried(init)
        result["initContainerStatuses"] = [*map(_ended, init[:tried]), *init[tried:]]
    # Static pods go on for ever, here as upstream.
    if not is_static(pod) and not is_terminal_phase(status.get("phase")):
        result["phase"] = "Failed"
    return result


def _ended(status: Status) -> Object:
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


def _tried(statuses: Sequence[Status]) -> int:
    """How many init containers there are up to the last that shows any sign of a start; at least one."""
    signs = [place for place, each in enumerate(statuses, 1) if _has_started(each)]
    return max(signs, default=1)
