"""Whether a terminated container may run again: by its rules, then its policy, then the pod's (RS-01 to RS-03).

`kuberuntime/backoff` decides when, and `kuberuntime/compute_pod_actions` what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    condition_of,
    containers_of,
    exit_code,
    init_containers_of,
    is_deleting,
    state_of,
    status_by_name,
)
from podlife.kubelet.runtime import ContainerState, ContainerStatus

RESTARTING_ALL = "RestartingAllContainers"
_RESTART_ALL_ACTION = "RestartAllContainers"


def matching_action(container: Container, code: int) -> str | None:
    """The action of the first rule that matches this exit code."""
    for rule in container.get("restartPolicyRules") or ():
        on = rule.get("exitCodes")
        if on is None:
            continue
        is_listed = code in (on.get("values") or ())
        if (on.get("operator") == "In" and is_listed) or (on.get("operator") == "NotIn" and not is_listed):
            return str(rule.get("action"))
    return None


def is_restartable(pod: Pod, container: Container, code: int) -> bool:
    """Whether the container may be restarted after this exit code (RS-02, RS-03)."""
    policy = container.get("restartPolicy")
    # Rules without a container-level policy are invalid, and upstream ignores them too.
    if policy and matching_action(container, code) in ("Restart", _RESTART_ALL_ACTION):
        return True
    for each in (policy, pod["spec"].get("restartPolicy")):
        match each:
            case "Always":
                return True
            case "OnFailure":
                return code != 0
            case "Never":
                return False
    return True


def restarts_on_failure(pod: Pod, container: Container | None = None) -> bool:
    """Whether a container that is killed because of a failure is started again."""
    policy = (container or {}).get("restartPolicy") or pod["spec"].get("restartPolicy")
    return bool(policy != "Never")


def should_start(pod: Pod, container: Container, newest: ContainerStatus | None) -> bool:
    """Whether to start a container, given its newest instance in the runtime (RS-01)."""
    if is_deleting(pod):
        return False
    if newest is None:
        return True
    match newest.state:
        case ContainerState.RUNNING:
            return False
        case ContainerState.EXITED:
            return is_restartable(pod, container, newest.exit_code or 0)
        case _:
            return True


def could_restart_all(pod: Pod) -> bool:
    return any(
        rule.get("action") == _RESTART_ALL_ACTION
        for container in (*init_containers_of(pod), *containers_of(pod))
        for rule in container.get("restartPolicyRules") or ()
    )


def should_restart_all(
    pod: Pod, status: Mapping[str, Any], newest: Mapping[str, ContainerStatus] | None = None
) -> bool:
    """Whether a restart of all containers is in progress or due, by the pod's status or the runtime's state."""
    restarting = condition_of(status, "AllContainersRestarting")
    if restarting is not None and restarting.get("status") == "True":
        return True
    shown = status_by_name(status.get("initContainerStatuses"), status.get("containerStatuses"))
    for container in (*init_containers_of(pod), *containers_of(pod)):
        name = container["name"]
        codes = []
        kind, state = state_of(shown.get(name, {}))
        if kind == "terminated":
            codes.append(exit_code(state))
        seen = (newest or {}).get(name)
        if seen is not None and seen.state is ContainerState.EXITED:
            codes.append(seen.exit_code or 0)
        if any(matching_action(container, code) == _RESTART_ALL_ACTION for code in codes):
            return True
    return False
