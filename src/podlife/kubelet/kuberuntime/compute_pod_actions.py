"""What a sync has to do so that a pod runs as it should (RS-04 to RS-13). Pure.

`KubeRuntimeManager` does it in this order: kill the pod or single containers, create a sandbox, start init containers,
start the others, waiting where `backoff` says so.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from podlife.kubelet.kuberuntime.compute_init_actions import InitPlan, ToKill, compute_init_actions
from podlife.kubelet.kuberuntime.grace_period import KillReason
from podlife.kubelet.kuberuntime.sandbox_changed import sandbox_changed
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of
from podlife.kubelet.prober.state import ProbeLookup, ProbeResult, ProbeType
from podlife.kubelet.restart_policy import matching_action, restarts_on_failure, should_start
from podlife.kubelet.runtime import ContainerState, ContainerStatus

"""What a probe says of the container with this ID; None when there is nothing yet."""

_HASH = "io.kubernetes.container.hash"


@dataclass(frozen=True, slots=True)
class PodActions:
    """Containers are named; those to kill come with their IDs."""

    kill_pod: bool = False
    create_sandbox: bool = False
    sandbox_id: str = ""
    attempt: int = 0
    start_init: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    start_ephemeral: tuple[str, ...] = ()
    kill: tuple[ToKill, ...] = ()
    # IDs of containers to kill and remove for a restart of the whole pod; those that asked for it come last.
    reset: tuple[str, ...] = ()


@dataclass(slots=True)
class _Regular:
    start: list[str] = field(default_factory=list)
    kill: list[ToKill] = field(default_factory=list)
    kept: int = 0


def spec_hash(container: Container) -> str:
    """Of what makes a running container another one when it changes: its name and image, as upstream."""
    told = json.dumps([container["name"], container.get("image") or ""])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def has_changed(container: Container, running: ContainerStatus) -> bool:
    """One that was started without a hash counts as unchanged."""
    known = running.config.annotations.get(_HASH)
    return known is not None and known != spec_hash(container)


def compute_pod_actions(
    pod: Pod, observed: ObservedPod, results: ProbeLookup, *, is_restarting_all: bool = False
) -> PodActions:
    need = sandbox_changed(pod, observed)
    if is_restarting_all:
        reset = _to_reset(pod, observed)
        return PodActions(need.is_new, need.is_new, need.sandbox_id, need.attempt, reset=reset)
    if need.is_new:
        is_worth_it, init, regular = _into_new_sandbox(pod, observed, need.attempt)
        return PodActions(True, is_worth_it, need.sandbox_id, need.attempt, init, regular)
    ephemeral = tuple(
        each["name"]
        for each in pod["spec"].get("ephemeralContainers") or ()
        if each["name"] not in observed.newest
    )
    plan = compute_init_actions(pod, observed, results, has_changed)
    if plan.kill_pod or not plan.is_initialized:
        return PodActions(
            plan.kill_pod,
            sandbox_id=need.sandbox_id,
            attempt=need.attempt,
            start_init=plan.start,
            start_ephemeral=ephemeral,
            kill=plan.kill,
        )
    return _with_regular(
        pod,
        observed,
        results,
        plan,
        PodActions(sandbox_id=need.sandbox_id, attempt=need.attempt, start_ephemeral=ephemeral),
    )


def _into_new_sandbox(
    pod: Pod, observed: ObservedPod, attempt: int
) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """Whether a sandbox is worth making, and which init and regular containers start in it."""
    nothing: tuple[bool, tuple[str, ...], tuple[str, ...]] = (False, (), ())
    if not restarts_on_failure(pod) and attempt != 0 and observed.containers:
        return nothing
    start = tuple(each["name"] for each in containers_of(pod) if not _is_done(pod, each, observed))
    if not start and any(each["name"] in observed.newest for each in containers_of(pod)):
        return nothing
    init = init_containers_of(pod)
    return (True, (init[0]["name"],), ()) if init else (True, (), start)


def _is_done(pod: Pod, container: Container, observed: ObservedPod) -> bool:
    policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy")
    newest = observed.newest.get(container["name"])
    has_succeeded = newest is not None and newest.state is ContainerState.EXITED and newest.exit_code == 0
    return policy == "OnFailure" and has_succeeded


def _with_regular(
    pod: Pod, observed: ObservedPod, results: ProbeLookup, plan: InitPlan, base: PodActions
) -> PodActions:
    regular = _Regular()
    for container in containers_of(pod):
        newest = observed.newest.get(container["name"])
        if newest is not None and newest.state is ContainerState.RUNNING:
            _look_at_running(pod, container, newest, results, regular)
        elif should_start(pod, container, newest):
            regular.start.append(container["name"])
            if newest is not None and newest.state is ContainerState.UNKNOWN:
                message = 'Container is in "unknown" state, try killing it before restart'
                regular.kill.append(ToKill(newest.id, container["name"], message))
    # Sidecars serve the regular containers: when none of those is left, they go too (RS-12).
    is_over = not regular.kept and not regular.start
    return PodActions(
        is_over,
        sandbox_id=base.sandbox_id,
        attempt=base.attempt,
        start_init=() if is_over else plan.start,
        start=tuple(regular.start),
        start_ephemeral=base.start_ephemeral,
        kill=(*plan.kill, *regular.kill),
    )


def _look_at_running(
    pod: Pod, container: Container, running: ContainerStatus, results: ProbeLookup, regular: _Regular
) -> None:
    name = container["name"]
    restarts, reason = restarts_on_failure(pod, container), KillReason.OTHER
    if has_changed(container, running):
        # Whatever the policy: what runs is not what is asked for (RS-11).
        message, restarts = f"Container {name} definition changed", True
    elif results(ProbeType.LIVENESS, running.id) is ProbeResult.FAILURE:
        message, reason = f"Container {name} failed liveness probe", KillReason.LIVENESS_PROBE
    elif results(ProbeType.STARTUP, running.id) is ProbeResult.FAILURE:
        message, reason = f"Container {name} failed startup probe", KillReason.STARTUP_PROBE
    else:
        regular.kept += 1
        return
    if restarts:
        message = f"{message}, will be restarted"
        regular.start.append(name)
    regular.kill.append(ToKill(running.id, name, message, reason))


def _to_reset(pod: Pod, observed: ObservedPod) -> tuple[str, ...]:
    targets: list[str] = []
    sources: list[str] = []
    for container in (*containers_of(pod), *init_containers_of(pod)):
        for place, each in enumerate(observed.instances(container["name"])):
            has_asked = (
                place == 0
                and each.state is ContainerState.EXITED
                and matching_action(container, each.exit_code or 0) == "RestartAllContainers"
            )
            (sources if has_asked else targets).append(each.id)
    return (*targets, *sources)
