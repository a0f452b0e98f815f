"""The complete status of a pod: containers, phase, readiness, conditions, addresses (PH-20 to PH-24, PR-15). Pure.

A pod never leaves a terminal phase. Conditions of other writers are preserved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from podlife.api.codec import Object, parse_time
from podlife.kubelet.kuberuntime.compute_pod_actions import sandbox_changed
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    bare_id,
    condition_of,
    containers_of,
    exit_code,
    init_containers_of,
    is_sidecar,
    is_terminal_phase,
    state_of,
    status_by_name,
)
from podlife.kubelet.prober.state import ProbeLookup, ProbeResult, ProbeType
from podlife.kubelet.restart_policy import could_restart_all
from podlife.kubelet.status import conditions
from podlife.kubelet.status.container_statuses import PodObservation, container_statuses
from podlife.kubelet.status.phase import phase_of

_RESTART_GRACE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """When the kubelet started, and the node's addresses, the primary one first."""

    kubelet_started: datetime
    host_ips: tuple[str, ...] = ()


def pod_status(
    seen: PodObservation,
    old: Mapping[str, Any],
    results: ProbeLookup,
    node: NodeFacts,
    *,
    is_terminal: bool = False,
) -> Object:
    """`old` is the newest known status, or the pod's own. `is_terminal`: no container will be started again."""
    pod = seen.pod
    status = _containers(seen, old)
    statuses = [*status["initContainerStatuses"], *status["containerStatuses"]]
    is_initialized = any(
        (newest := seen.observed.newest.get(each["name"])) is not None
        and seen.observed.is_in_newest_sandbox(newest)
        for each in containers_of(pod)
    )
    found = phase_of(pod, statuses, is_terminal=is_terminal, is_initialized=is_initialized)
    status.update(_phase(pod, old, found))
    status = with_flags(pod, status, results, node.kubelet_started)
    status["conditions"] = _conditions(seen, old, status)
    status.update(_addresses(seen, old, node))
    return {key: value for key, value in status.items() if value}


def _never_started(seen: PodObservation, old: Mapping[str, Any]) -> bool:
    """Whether the pod ended without any container, for example because it was rejected. No termination may be reported
    for containers that never existed: a Job's pod failure policy could match it."""
    reported = (*(old.get("containerStatuses") or ()), *(old.get("initContainerStatuses") or ()))
    return is_terminal_phase(old.get("phase")) and not reported and not seen.observed.containers


def _containers(seen: PodObservation, old: Mapping[str, Any]) -> Object:
    specs = {
        "containerStatuses": containers_of(seen.pod),
        "initContainerStatuses": init_containers_of(seen.pod),
        "ephemeralContainerStatuses": seen.pod["spec"].get("ephemeralContainers") or (),
    }
    if _never_started(seen, old):
        return {key: [] for key in specs}
    return {
        key: container_statuses(seen, each, old.get(key), is_init=key == "initContainerStatuses")
        for key, each in specs.items()
    }


def _phase(pod: Pod, old: Mapping[str, Any], found: str) -> Object:
    api_status = pod.get("status") or {}
    phase = found
    if not is_terminal_phase(phase) and is_terminal_phase(old.get("phase")):
        phase = old["phase"]
    if is_terminal_phase(api_status.get("phase")):
        # Other components have seen the API server's phase, so it cannot be undone.
        phase = api_status["phase"]
    fields: Object = {"phase": phase}
    if phase == old.get("phase"):
        for key in ("reason", "message"):
            fields[key] = old.get(key) or api_status.get(key) or ""
    return fields


def _conditions(seen: PodObservation, old: Mapping[str, Any], status: Mapping[str, Any]) -> list[Object]:
    pod, phase = seen.pod, status["phase"]
    statuses: Sequence[Mapping[str, Any]] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    api_conditions = (pod.get("status") or {}).get("conditions") or ()
    found = [dict(each) for each in api_conditions if not conditions.is_owned_by_kubelet(each["type"])]
    found += map(dict, seen.resize)
    if disruption := condition_of(old, conditions.DISRUPTION_TARGET):
        found = conditions.with_condition(found, disruption)
    has_sandbox = not sandbox_changed(pod, seen.observed).is_new
    found += [
        # True while the pod has a sandbox with network that need not be replaced.
        conditions.condition(pod, "PodReadyToStartContainers", has_sandbox),
        conditions.initialized(pod, old, statuses, phase),
        conditions.ready(pod, found, statuses, phase),
        conditions.containers_ready(pod, statuses, phase),
        # Only scheduled pods reach the kubelet.
        conditions.condition(pod, "PodScheduled", True),
    ]
    if could_restart_all(pod):
        found.append(conditions.all_containers_restarting(pod, phase, is_restarting=seen.is_restarting_all))
    return found


def _addresses(seen: PodObservation, old: Mapping[str, Any], node: NodeFacts) -> Object:
    ready = seen.observed.ready_sandboxes
    ips: Sequence[str] = ready[0].ips if ready else ()
    if not ips:
        # A pod that has lost its sandbox keeps its last address.
        ips = [each["ip"] for each in old.get("podIPs") or ()]
    if seen.pod["spec"].get("hostNetwork") and not ips:
        ips = node.host_ips
    fields: Object = {}
    if node.host_ips:
        fields.update(hostIP=node.host_ips[0], hostIPs=[{"ip": each} for each in node.host_ips])
    if ips:
        fields.update(podIP=ips[0], podIPs=[{"ip": each} for each in ips])
    return fields


def with_flags(
    pod: Pod, status: Mapping[str, Any], results: ProbeLookup, kubelet_started: datetime
) -> Object:
    """Set `started` and `ready` of each container; `results` is looked up by runtime ID."""
    flags = _Flags(pod, results, kubelet_started - _RESTART_GRACE)
    result = dict(status)
    for key, containers, is_init in (
        ("containerStatuses", containers_of(pod), False),
        ("initContainerStatuses", init_containers_of(pod), True),
    ):
        specs = {each["name"]: each for each in containers}
        if status.get(key):
            result[key] = [
                flags.of(specs[each["name"]], each, is_init=is_init) if each["name"] in specs else dict(each)
                for each in status[key]
            ]
    return result


class _Flags:
    def __init__(self, pod: Pod, results: ProbeLookup, old: datetime) -> None:
        self._results = results
        self._old = old
        api_status = pod.get("status") or {}
        self._reported = status_by_name(
            api_status.get("initContainerStatuses"), api_status.get("containerStatuses")
        )

    def of(self, container: Container, status: Mapping[str, Any], *, is_init: bool) -> Object:
        is_started = self._is_started(container, status)
        if is_init and not is_sidecar(container):
            kind, state = state_of(status)
            is_ready = kind == "terminated" and exit_code(state) == 0
        else:
            is_ready = is_started and self._is_ready(container, status)
        return {**status, "started": is_started, "ready": is_ready}

    def _is_started(self, container: Container, status: Mapping[str, Any]) -> bool:
        if state_of(status)[0] != "running":
            return False
        result = self._results(ProbeType.STARTUP, bare_id(status.get("containerID") or ""))
        if result is not None:
            return result is ProbeResult.SUCCESS
        return bool(status.get("started")) or not container.get(ProbeType.STARTUP.value)

    def _is_ready(self, container: Container, status: Mapping[str, Any]) -> bool:
        """For a container that is running and has started."""
        container_id = status.get("containerID") or ""
        result = self._results(ProbeType.READINESS, bare_id(container_id))
        if result is ProbeResult.SUCCESS or not container.get(ProbeType.READINESS.value):
            return True
        # After a kubelet restart the last reported readiness holds until the first probe.
        api_status = self._reported.get(container["name"], {})
        began = state_of(status)[1].get("startedAt")
        predates_kubelet = began is not None and parse_time(began) < self._old
        return (
            result is None
            and predates_kubelet
            and bool(api_status.get("ready"))
            and (api_status.get("containerID") == container_id)
        )
