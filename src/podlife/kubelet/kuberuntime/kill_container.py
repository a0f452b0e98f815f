"""Kills containers and whole pods (KC-01 to KC-14): event, preStop hook, termination order, stop, and sandboxes last.

All containers of a pod are killed concurrently; any failure fails the whole kill, after everything was tried (KC-13). A
kill may be repeated, even with a shorter grace period: it shortens a stop in progress, and no hook runs twice. A hook
that exceeds the grace period is cancelled; upstream lets it run on (KC-09).

The preStop hook and then the wait for other containers use up the grace period; the runtime gets the rest, but at least
two seconds.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from podlife.kubelet.constants import MAXIMUM_STOP_SECONDS, MINIMUM_STOP_SECONDS
from podlife.kubelet.interfaces import HookError, Hooks
from podlife.kubelet.kuberuntime.labels import restore
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of, is_sidecar
from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerStatus,
    NotFoundInRuntimeError,
    Runtime,
)

log = logging.getLogger(__name__)

# Event reasons and messages.
KILLING = "Killing"
FAILED_PRE_STOP_HOOK = ("FailedPreStopHook", "PreStopHook failed")
FAILED_POST_START_HOOK = ("FailedPostStartHook", "PostStartHook failed")


class PodKillError(ContainerRuntimeError):
    """A part of the pod could not be stopped; the message says which."""


class KillReason(enum.Enum):
    OTHER = "other"
    STARTUP_PROBE = "startupProbe"
    LIVENESS_PROBE = "livenessProbe"


@dataclass(frozen=True, slots=True)
class StopBudget:
    """Remaining whole seconds of the grace period."""

    seconds: int

    @property
    def has_time_for_hook(self) -> bool:
        """With grace 0, neither the preStop hook nor the termination order applies (KC-08, KC-11)."""
        return self.seconds > 0

    def without(self, waited_seconds: float) -> StopBudget:
        """The budget after a wait, counted in whole seconds (KC-09)."""
        return StopBudget(self.seconds - int(waited_seconds))

    @property
    def runtime_seconds(self) -> int:
        """The grace period passed to the runtime (KC-12)."""
        return max(self.seconds, MINIMUM_STOP_SECONDS)


def stop_budget(
    pod: Pod,
    container: Container,
    *,
    reason: KillReason = KillReason.OTHER,
    override_seconds: int | None = None,
) -> StopBudget:
    """The grace period of a container. An override replaces it, even if longer (KC-06). Bounded, because the API allows
    grace periods that exceed the deadlines of a runtime client."""
    seconds = _base_seconds(pod, container, reason) if override_seconds is None else override_seconds
    return StopBudget(min(seconds, MAXIMUM_STOP_SECONDS))


def _base_seconds(pod: Pod, container: Container, reason: KillReason) -> int:
    deletion = pod["metadata"].get("deletionGracePeriodSeconds")
    if deletion is not None:
        return int(deletion)
    spec = pod["spec"].get("terminationGracePeriodSeconds")
    if spec is None:
        return MINIMUM_STOP_SECONDS
    own = (container.get(reason.value) or {}).get("terminationGracePeriodSeconds")
    return int(spec if own is None else own)


def killing_message(name: str, message: str = "") -> str:
    """The message of the event sent before the preStop hook (KC-07)."""
    return message or f"Stopping container {name}"


def stop_predecessors(pod: Pod, running: Collection[str]) -> Mapping[str, frozenset[str]]:
    """For each sidecar, the running containers that must stop before it; other containers do not wait."""
    regular = frozenset(each["name"] for each in containers_of(pod))
    waits: dict[str, frozenset[str]] = {}
    later: frozenset[str] = frozenset()
    for container in reversed(init_containers_of(pod)):
        if is_sidecar(container):
            waits[container["name"]] = (regular | later) & frozenset(running)
            later = frozenset((container["name"],))
    return waits


class TerminationOrder:
    """Termination order within a pod (KO-01 to KO-04). A sidecar serves the regular containers and the sidecars after
    it, so it stops after the regular ones and the next sidecar. No wait exceeds the grace period. Call `ended` for
    every container, even if its stop failed."""

    def __init__(self, pod: Pod, running: Collection[str]) -> None:
        self._waits = stop_predecessors(pod, running)
        self._ended = {name: asyncio.Event() for name in frozenset().union(*self._waits.values())}

    async def wait(self, name: str, grace_seconds: float) -> float:
        """Wait for this container's turn, at most for the grace period; returns the seconds waited."""
        events = [self._ended[each] for each in self._waits.get(name, ())]
        if not events or grace_seconds <= 0:
            return 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(grace_seconds):
                for event in events:
                    await event.wait()
        except TimeoutError:
            pass
        return loop.time() - began

    def ended(self, name: str) -> None:
        if name in self._ended:
            self._ended[name].set()


@dataclass(frozen=True, slots=True)
class KillRequest:
    """Why to kill a container, and an optional override of its grace period."""

    message: str = ""
    reason: KillReason = KillReason.OTHER
    override_seconds: int | None = None
    pod_ip: str = ""


class ContainerKiller:
    def __init__(self, runtime: Runtime, hooks: Hooks, events: PodEvents) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._events = events
        # IDs of containers whose preStop hook was started, by pod UID.
        self._hooks_started: dict[str, set[str]] = {}

    async def kill_pod(
        self, pod: Pod | None, observed: ObservedPod, *, grace_seconds: int | None = None
    ) -> None:
        """Without a pod, each container is stopped according to its labels (KC-02). Raises `PodKillError`."""
        alive = [each for each in observed.containers if each.could_run]
        order = None
        if pod is not None and any(is_sidecar(each) for each in init_containers_of(pod)):
            order = TerminationOrder(pod, [each.config.name for each in alive])
        ips = next((each.ips for each in observed.sandboxes if each.ips), ())
        kill = KillRequest(override_seconds=grace_seconds, pod_ip=ips[0] if ips else "")
        failures = await _gather_errors(*(self.kill_container(pod, each, kill, order) for each in alive))
        failures += await _gather_errors(*(self._stop_sandbox(each.id) for each in observed.sandboxes))
        if failures:
            raise PodKillError("; ".join(str(each) for each in failures)) from failures[0]

    async def kill_container(
        self,
        pod: Pod | None,
        known: ContainerStatus,
        kill: KillRequest,
        order: TerminationOrder | None = None,
    ) -> None:
        """Return when the container is not running. One that the runtime does not have counts as stopped (KC-12)."""
        name = known.config.name
        try:
            if pod is not None:
                container = container_to_stop(pod, name, known.id)
            else:
                pod, container = restore(known.config.labels, known.config.annotations)
            self._events.container(
                pod, container, KILLING, killing_message(name, kill.message), container_id=known.id
            )
            budget = stop_budget(pod, container, reason=kill.reason, override_seconds=kill.override_seconds)
            budget = await self._run_hook(pod, container, known.id, budget, kill.pod_ip)
            if order is not None and budget.has_time_for_hook:
                budget = budget.without(await order.wait(name, budget.seconds))
            await self._runtime.stop_container(known.id, grace_seconds=budget.runtime_seconds)
        except NotFoundInRuntimeError:
            log.debug("container %s is already gone", name)
        finally:
            if order is not None:
                order.ended(name)

    def forget(self, uid: str) -> None:
        self._hooks_started.pop(uid, None)

    async def _run_hook(
        self, pod: Pod, container: Container, container_id: str, budget: StopBudget, pod_ip: str
    ) -> StopBudget:
        """Run the preStop hook, if any; returns the remaining budget (KC-08 to KC-10)."""
        handler = (container.get("lifecycle") or {}).get("preStop")
        started = self._hooks_started.setdefault(pod["metadata"]["uid"], set()) if handler else set()
        if not handler or not budget.has_time_for_hook or container_id in started:
            return budget
        started.add(container_id)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(budget.seconds):
                await self._hooks.run(pod, container, container_id, handler, pod_ip=pod_ip)
        except TimeoutError:
            log.warning("preStop hook of container %s exceeded the grace period", container["name"])
        except Exception as error:  # noqa: BLE001 - the container must stop whatever the hook raises
            why = str(error) if isinstance(error, HookError) else repr(error)
            log.warning("preStop hook of container %s failed: %s", container["name"], why)
            self._events.container(pod, container, *FAILED_PRE_STOP_HOOK, is_warning=True)
        return budget.without(loop.time() - began)

    async def _stop_sandbox(self, sandbox_id: str) -> None:
        try:
            await self._runtime.stop_sandbox(sandbox_id)
        except NotFoundInRuntimeError:
            log.debug("sandbox %s is already gone", sandbox_id)


def container_to_stop(pod: Pod, name: str, container_id: str) -> Container:
    """The spec of a container of the pod. Raises `PodKillError` if it has none (KC-01)."""
    ephemeral: Iterable[Container] = pod["spec"].get("ephemeralContainers") or ()
    for container in (*containers_of(pod), *init_containers_of(pod), *ephemeral):
        if container["name"] == name:
            return container
    pod_name = pod["metadata"].get("name", "")
    raise PodKillError(
        f"failed to get containerSpec {name!r} (id={container_id!r}) in pod {pod_name!r} when killing container"
    )


async def _gather_errors(*kills: object) -> list[Exception]:
    """Wait for all; returns the errors."""
    if not kills:
        return []
    outcomes = await asyncio.gather(*kills, return_exceptions=True)  # type: ignore[call-overload] # coroutines
    return [each for each in outcomes if isinstance(each, Exception)]
