"""What a sync has to do to bring a pod to its desired state (RS-04 to RS-13). Pure.

`KubeRuntimeManager` does it in this order: kill the pod or single containers, create a sandbox, start init containers,
start the others, waiting where `backoff` says so.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace

from podlife.kubelet.kuberuntime.kill_container import KillReason
from podlife.kubelet.kuberuntime.labels import HASH
from podlife.kubelet.kuberuntime.resources import resize_of
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of, is_sidecar
from podlife.kubelet.prober.state import ProbeLookup, ProbeResult, ProbeType
from podlife.kubelet.restart_policy import matching_action, restarts_on_failure, should_start
from podlife.kubelet.runtime import ContainerState, ContainerStatus, Resources, SandboxState


@dataclass(frozen=True, slots=True)
class ToKill:
    container_id: str
    name: str
    message: str
    reason: KillReason = KillReason.OTHER


@dataclass(frozen=True, slots=True)
class ToResize:
    """A running container that gets other resources in place."""

    container_id: str
    resources: Resources


@dataclass(frozen=True, slots=True)
class PodActions:
    """Containers to start are named; containers to kill or reset have IDs."""

    kill_pod: bool = False
    create_sandbox: bool = False
    sandbox_id: str = ""
    attempt: int = 0
    start_init: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    start_ephemeral: tuple[str, ...] = ()
    kill: tuple[ToKill, ...] = ()
    # IDs of containers to kill and remove before all containers restart; those that triggered the restart come last.
    reset: tuple[str, ...] = ()
    resize: tuple[ToResize, ...] = ()


@dataclass(slots=True)
class _Regular:
    start: list[str] = field(default_factory=list)
    kill: list[ToKill] = field(default_factory=list)
    resize: list[ToResize] = field(default_factory=list)
    kept: int = 0


@dataclass(frozen=True, slots=True)
class SandboxNeed:
    """`attempt` is that of the sandbox to create, or of the current one; `sandbox_id` is the newest sandbox."""

    is_new: bool
    attempt: int = 0
    sandbox_id: str = ""


def sandbox_changed(pod: Pod, observed: ObservedPod) -> SandboxNeed:
    """Whether a pod needs a new sandbox (RS-04, RS-06, RS-07)."""
    if not observed.sandboxes:
        return SandboxNeed(True)
    newest = observed.sandboxes[0]
    uses_host_network = bool(pod["spec"].get("hostNetwork"))
    another = SandboxNeed(True, newest.config.attempt + 1, newest.id)
    if len(observed.ready_sandboxes) > 1 or newest.state is not SandboxState.READY:
        return another
    if newest.config.host_network is not uses_host_network:
        return SandboxNeed(True, newest.config.attempt + 1)
    if not uses_host_network and not newest.ips:
        return another
    return SandboxNeed(False, newest.config.attempt, newest.id)


def spec_hash(container: Container) -> str:
    """As upstream, a hash of name and image: a change of these restarts a running container."""
    identity = json.dumps([container["name"], container.get("image") or ""])
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def has_changed(container: Container, running: ContainerStatus) -> bool:
    """A container started without a hash counts as unchanged."""
    known = running.config.annotations.get(HASH)
    return known is not None and known != spec_hash(container)


def compute_pod_actions(
    pod: Pod, observed: ObservedPod, results: ProbeLookup, *, is_restarting_all: bool = False
) -> PodActions:
    need = sandbox_changed(pod, observed)
    if is_restarting_all:
        reset = _to_reset(pod, observed)
        return PodActions(need.is_new, need.is_new, need.sandbox_id, need.attempt, reset=reset)
    if need.is_new:
        is_needed, init, regular = _into_new_sandbox(pod, observed, need.attempt)
        return PodActions(True, is_needed, need.sandbox_id, need.attempt, init, regular)
    ephemeral = tuple(
        each["name"]
        for each in pod["spec"].get("ephemeralContainers") or ()
        if each["name"] not in observed.newest
    )
    kept = PodActions(sandbox_id=need.sandbox_id, attempt=need.attempt, start_ephemeral=ephemeral)
    plan = compute_init_actions(pod, observed, results)
    if plan.kill_pod or not plan.is_initialized:
        return replace(
            kept, kill_pod=plan.kill_pod, start_init=plan.start, kill=plan.kill, resize=plan.resize
        )
    return _with_regular(pod, observed, results, plan, kept)


def _into_new_sandbox(
    pod: Pod, observed: ObservedPod, attempt: int
) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """Whether to create a new sandbox, and which init and regular containers to start in it."""
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
    pod: Pod, observed: ObservedPod, results: ProbeLookup, plan: InitPlan, kept: PodActions
) -> PodActions:
    regular = _Regular()
    for container in containers_of(pod):
        newest = observed.newest.get(container["name"])
        if newest is not None and newest.state is ContainerState.RUNNING:
            _check_running(pod, container, newest, results, regular)
        elif should_start(pod, container, newest):
            regular.start.append(container["name"])
            if newest is not None and newest.state is ContainerState.UNKNOWN:
                message = 'Container is in "unknown" state, try killing it before restart'
                regular.kill.append(ToKill(newest.id, container["name"], message))
    # Sidecars serve the regular containers and stop with the last of them (RS-12).
    is_over = not regular.kept and not regular.start
    return replace(
        kept,
        kill_pod=is_over,
        start_init=() if is_over else plan.start,
        start=tuple(regular.start),
        kill=(*plan.kill, *regular.kill),
        resize=(*plan.resize, *regular.resize),
    )


def _check_running(
    pod: Pod, container: Container, running: ContainerStatus, results: ProbeLookup, regular: _Regular
) -> None:
    name = container["name"]
    restarts, reason = restarts_on_failure(pod, container), KillReason.OTHER
    if has_changed(container, running):
        # Regardless of the restart policy, the container does not match its spec (RS-11).
        message, restarts = f"Container {name} definition changed", True
    elif results(ProbeType.LIVENESS, running.id) is ProbeResult.FAILURE:
        message, reason = f"Container {name} failed liveness probe", KillReason.LIVENESS_PROBE
    elif results(ProbeType.STARTUP, running.id) is ProbeResult.FAILURE:
        message, reason = f"Container {name} failed startup probe", KillReason.STARTUP_PROBE
    elif (resize := resize_of(container, running)) is not None and resize.needs_restart:
        regular.start.append(name)
        regular.kill.append(ToKill(running.id, name, _restart_message(name)))
        return
    else:
        regular.kept += 1
        if resize is not None:
            regular.resize.append(ToResize(running.id, resize.resources))
        return
    if restarts:
        message = f"{message}, will be restarted"
        regular.start.append(name)
    regular.kill.append(ToKill(running.id, name, message, reason))


def _restart_message(name: str) -> str:
    return f"Container {name} resize requires restart"


def _to_reset(pod: Pod, observed: ObservedPod) -> tuple[str, ...]:
    targets: list[str] = []
    sources: list[str] = []
    for container in (*containers_of(pod), *init_containers_of(pod)):
        for index, each in enumerate(observed.instances(container["name"])):
            is_source = (
                index == 0
                and each.state is ContainerState.EXITED
                and matching_action(container, each.exit_code or 0) == "RestartAllContainers"
            )
            (sources if is_source else targets).append(each.id)
    return (*targets, *sources)


# Init containers and sidecars (RS-13)


@dataclass(frozen=True, slots=True)
class InitPlan:
    is_initialized: bool
    kill_pod: bool = False
    start: tuple[str, ...] = ()
    kill: tuple[ToKill, ...] = ()
    resize: tuple[ToResize, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """What one container needs. `is_done`: the next one may start."""

    starts: bool = False
    is_done: bool = False
    ends_pod: bool = False
    kill: ToKill | None = None
    resize: ToResize | None = None


_NOTHING = _Step()


def compute_init_actions(pod: Pod, observed: ObservedPod, results: ProbeLookup) -> InitPlan:
    """Init containers run in order; a sidecar is done once it has started, and keeps running. Iterates backwards: the
    last known container shows how far the pod has come; of those before it, only sidecars matter."""
    init = init_containers_of(pod)
    if not init:
        return InitPlan(True)
    is_initialized = is_past = _has_regular(pod, observed)
    start: list[int] = []
    kill: list[ToKill] = []
    resize: list[ToResize] = []
    for index in reversed(range(len(init))):
        container = init[index]
        known = observed.newest.get(container["name"])
        if known is None:
            if is_past and is_sidecar(container):
                start.append(index)
            continue
        if is_past and not is_sidecar(container):
            continue
        step = _step(pod, container, known, results)
        if step.ends_pod:
            return InitPlan(False, kill_pod=True, kill=tuple(kill))
        if step.is_done and index == len(init) - 1:
            is_initialized = True
        elif step.is_done and not is_past:
            start.append(index + 1)
        if step.starts:
            start.append(index)
        kill += filter(None, (step.kill,))
        resize += filter(None, (step.resize,))
        is_past = True
    if not is_past:
        start.append(0)
    return InitPlan(
        is_initialized,
        start=tuple(init[each]["name"] for each in reversed(start)),
        kill=tuple(kill),
        resize=tuple(resize),
    )


def _has_regular(pod: Pod, observed: ObservedPod) -> bool:
    """Ignores exited regular containers, which may belong to an earlier sandbox."""
    return any(
        (known := observed.newest.get(each["name"])) is not None
        and known.state in (ContainerState.CREATED, ContainerState.RUNNING)
        for each in containers_of(pod)
    )


def _step(pod: Pod, container: Container, known: ContainerStatus, results: ProbeLookup) -> _Step:
    match known.state:
        case ContainerState.CREATED:
            return _Step(starts=True)
        case ContainerState.RUNNING:
            if not is_sidecar(container):
                return replace(_NOTHING, resize=_to_resize(container, known))
            return _running_sidecar(container, known, results)
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


def _running_sidecar(container: Container, known: ContainerStatus, results: ProbeLookup) -> _Step:
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
    resize = resize_of(container, known)
    if resize is not None and resize.needs_restart:
        return _Step(starts=True, is_done=True, kill=ToKill(known.id, name, _restart_message(name)))
    return _Step(is_done=True, resize=_to_resize(container, known))


def _to_resize(container: Container, known: ContainerStatus) -> ToResize | None:
    resize = resize_of(container, known)
    return None if resize is None else ToResize(known.id, resize.resources)
