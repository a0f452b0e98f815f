"""What a sync does about a pod's init containers and sidecars (RS-13). Pure.

They run in order; a sidecar is done once it has started, and is kept running. Read from the last one: the last that is
known says how far the pod has come, and those before it count only as sidecars.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podlife.kubelet.kuberuntime.grace_period import KillReason
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of, is_sidecar
from podlife.kubelet.prober.state import ProbeLookup, ProbeResult, ProbeType
from podlife.kubelet.restart_policy import restarts_on_failure, should_start
from podlife.kubelet.runtime import ContainerState, ContainerStatus


@dataclass(frozen=True, slots=True)
class ToKill:
    container_id: str
    name: str
    message: str
    reason: KillReason = KillReason.OTHER


@dataclass(frozen=True, slots=True)
class InitPlan:
    is_initialized: bool
    kill_pod: bool = False
    start: tuple[str, ...] = ()
    kill: tuple[ToKill, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """What one container asks for. `is_done`: the next may start."""

    starts: bool = False
    is_done: bool = False
    ends_pod: bool = False
    kill: ToKill | None = None


_NOTHING = _Step()
HasChanged = Callable[[Container, ContainerStatus], bool]


def compute_init_actions(
    pod: Pod, observed: ObservedPod, results: ProbeLookup, has_changed: HasChanged
) -> InitPlan:
    init = init_containers_of(pod)
    if not init:
        return InitPlan(True)
    is_initialized = is_past = _has_regular(pod, observed)
    start: list[int] = []
    kill: list[ToKill] = []
    for place in reversed(range(len(init))):
        container = init[place]
        known = observed.newest.get(container["name"])
        if known is None:
            if is_past and is_sidecar(container):
                start.append(place)
            continue
        if is_past and not is_sidecar(container):
            continue
        step = _step(pod, container, known, results, has_changed)
        if step.ends_pod:
            return InitPlan(False, kill_pod=True, kill=tuple(kill))
        if step.is_done and place == len(init) - 1:
            is_initialized = True
        elif step.is_done and not is_past:
            start.append(place + 1)
        if step.starts:
            start.append(place)
        if step.kill is not None:
            kill.append(step.kill)
        is_past = True
    if not is_past:
        start.append(0)
    return InitPlan(
        is_initialized, start=tuple(init[each]["name"] for each in reversed(start)), kill=tuple(kill)
    )


def _has_regular(pod: Pod, observed: ObservedPod) -> bool:
    """A regular container that exited may be of a sandbox before this one, and says nothing."""
    return any(
        (known := observed.newest.get(each["name"])) is not None
        and known.state in (ContainerState.CREATED, ContainerState.RUNNING)
        for each in containers_of(pod)
    )


def _step(
    pod: Pod, container: Container, known: ContainerStatus, results: ProbeLookup, has_changed: HasChanged
) -> _Step:
    match known.state:
        case ContainerState.CREATED:
            return _Step(starts=True)
        case ContainerState.RUNNING:
            if not is_sidecar(container):
                return _NOTHING
            return _running_sidecar(container, known, results, has_changed)
        case ContainerState.EXITED:
            return _exited(pod, container, known)
        case _:
            if not is_sidecar(container) and not restarts_on_failure(pod, container):
                return _Step(ends_pod=True)
            message = 'Init container is in "unknown" state, try killing it before restart'
            return _Step(starts=True, kill=ToKill(known.id, container["name"], message))


def _exited(pod: Pod, container: Container, known: ContainerStatus) -> _Step:
    if is_sidecar(container):
        return _Step(starts=True)
    if known.exit_code == 0:
        return _Step(is_done=True)
    return _Step(starts=True) if should_start(pod, container, known) else _Step(ends_pod=True)


def _running_sidecar(
    container: Container, known: ContainerStatus, results: ProbeLookup, has_changed: HasChanged
) -> _Step:
    name = container["name"]
    if container.get("startupProbe"):
        result = results(ProbeType.STARTUP, known.id)
        if result is ProbeResult.FAILURE:
            message = f"Init container {name} failed startup probe"
            return _Step(starts=True, kill=ToKill(known.id, name, message, KillReason.STARTUP_PROBE))
        if result is not ProbeResult.SUCCESS:
            return _NOTHING
    if has_changed(container, known):
        message = f"Init container {name} definition changed"
        return _Step(starts=True, is_done=True, kill=ToKill(known.id, name, message))
    if container.get("livenessProbe") and results(ProbeType.LIVENESS, known.id) is ProbeResult.FAILURE:
        message = f"Init container {name} failed liveness probe"
        kill = ToKill(known.id, name, message, KillReason.LIVENESS_PROBE)
        return _Step(starts=True, is_done=True, kill=kill)
    return _Step(is_done=True)
