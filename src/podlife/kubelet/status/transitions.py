"""Which transitions a container status may make: an ended container returns only if it may restart (SM-06). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    containers_of,
    exit_code,
    init_containers_of,
    is_sidecar,
    state_of,
    status_by_name,
)
from podlife.kubelet.restart_policy import could_restart_all, is_restartable

Status = Mapping[str, Any]


def illegal_transition(pod: Pod, old: Status, new: Status) -> str | None:
    """What is wrong with the step from one status to another, if something is."""
    if pod["spec"].get("restartPolicy") == "Always" or could_restart_all(pod):
        return None
    regular = _returned(pod, containers_of(pod), old.get("containerStatuses"), new.get("containerStatuses"))
    for name in regular:
        return f"terminated container {name} attempted illegal transition to non-terminated state"
    init = [each for each in init_containers_of(pod) if not is_sidecar(each)]
    for name in _returned(pod, init, old.get("initContainerStatuses"), new.get("initContainerStatuses")):
        return f"terminated init container {name} attempted illegal transition to non-terminated state"
    return None


def _returned(
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
    """Sort of container, exit code and reason of each that has ended with this step (SM-07)."""
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
