"""Kills containers and whole pods (KC-01 to KC-14): event, preStop hook, turn, stop, and the sandboxes last.

All containers of a pod are ended together; any failure fails the whole kill, after everything was tried (KC-13). A kill
may be repeated, even with a shorter grace period: what is ending then ends sooner, and no hook runs twice. A hook that
exceeds the grace period is cancelled; upstream lets it run on (KC-09).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from podlife.kubelet.interfaces import HookError, Hooks
from podlife.kubelet.kuberuntime.grace_period import (
    FAILED_PRE_STOP_HOOK,
    KILLING,
    KillReason,
    StopBudget,
    container_to_stop,
    killing_message,
    stop_budget,
)
from podlife.kubelet.kuberuntime.labels import restore
from podlife.kubelet.kuberuntime.termination_order import TerminationOrder
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Container, Pod, init_containers_of, is_sidecar
from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    NotFoundInRuntimeError,
    Runtime,
)

log = logging.getLogger(__name__)

# What can have something that runs: of one that is unknown nobody can say that it has not.
_ALIVE = (ContainerState.RUNNING, ContainerState.UNKNOWN)


class PodKillError(ContainerRuntimeError):
    """Something of the pod could not be ended; the text says what."""


@dataclass(frozen=True, slots=True)
class KillRequest:
    """Why a container is ended, and in what time if not in its own."""

    message: str = ""
    reason: KillReason = KillReason.OTHER
    override_seconds: int | None = None
    pod_ip: str = ""


class ContainerKiller:
    def __init__(self, runtime: Runtime, hooks: Hooks, events: PodEvents) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._events = events
        # IDs of the containers whose preStop hook was begun, by UID of their pods.
        self._hooked: dict[str, set[str]] = {}

    async def kill_pod(
        self, pod: Pod | None, observed: ObservedPod, *, grace_seconds: int | None = None
    ) -> None:
        """Without a pod, each container ends as its own labels say (KC-02). Raises `PodKillError`."""
        alive = [each for each in observed.containers if each.state in _ALIVE]
        turns = None
        if pod is not None and any(is_sidecar(each) for each in init_containers_of(pod)):
            turns = TerminationOrder(pod, [each.config.name for each in alive])
        ips = next((each.ips for each in observed.sandboxes if each.ips), ())
        kill = KillRequest(override_seconds=grace_seconds, pod_ip=ips[0] if ips else "")
        failures = await _all(*(self.kill_container(pod, each, kill, turns) for each in alive))
        failures += await _all(*(self._stop_sandbox(each.id) for each in observed.sandboxes))
        if failures:
            raise PodKillError("; ".join(str(each) for each in failures)) from failures[0]

    async def kill_container(
        self,
        pod: Pod | None,
        known: ContainerStatus,
        kill: KillRequest,
        turns: TerminationOrder | None = None,
    ) -> None:
        """Returns when nothing of it runs any more. One that the runtime does not know has ended (KC-12)."""
        name = known.config.name
        try:
            pod, container = _specs(pod, known)
            self._events.container(
                pod, container, KILLING, killing_message(name, kill.message), container_id=known.id
            )
            budget = stop_budget(pod, container, reason=kill.reason, override_seconds=kill.override_seconds)
            budget = await self._run_hook(pod, container, known.id, budget, kill.pod_ip)
            if turns is not None and budget.has_time_for_hook:
                budget = budget.without(await turns.wait(name, budget.seconds))
            await self._runtime.stop_container(known.id, grace_seconds=budget.runtime_seconds)
        except NotFoundInRuntimeError:
            log.debug("container %s is already gone", name)
        finally:
            if turns is not None:
                turns.ended(name)

    def forget(self, uid: str) -> None:
        self._hooked.pop(uid, None)

    async def _run_hook(
        self, pod: Pod, container: Container, container_id: str, budget: StopBudget, pod_ip: str
    ) -> StopBudget:
        """What is left of the budget after the preStop hook, if there is one (KC-08 to KC-10)."""
        handler = (container.get("lifecycle") or {}).get("preStop")
        hooked = self._hooked.setdefault(pod["metadata"]["uid"], set()) if handler else set()
        if not handler or not budget.has_time_for_hook or container_id in hooked:
            return budget
        hooked.add(container_id)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(budget.seconds):
                await self._hooks.run(pod, container, container_id, handler, pod_ip=pod_ip)
        except TimeoutError:
            log.warning("preStop hook of container %s exceeded the grace period", container["name"])
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the hook, the container has to end
            why = str(error) if isinstance(error, HookError) else repr(error)
            log.warning("preStop hook of container %s failed: %s", container["name"], why)
            self._events.container(pod, container, *FAILED_PRE_STOP_HOOK, is_warning=True)
        return budget.without(loop.time() - began)

    async def _stop_sandbox(self, sandbox_id: str) -> None:
        try:
            await self._runtime.stop_sandbox(sandbox_id)
        except NotFoundInRuntimeError:
            log.debug("sandbox %s is already gone", sandbox_id)


def _specs(pod: Pod | None, known: ContainerStatus) -> tuple[Pod, Container]:
    """What is known of a container that is to end. Raises `PodKillError` for one that its pod does not have (KC-01)."""
    if pod is None:
        return restore(known.config.labels, known.config.annotations)
    try:
        return pod, container_to_stop(pod, known.config.name, known.id)
    except LookupError as error:
        raise PodKillError(str(error.args[0])) from None


async def _all(*kills: object) -> list[Exception]:
    """Wait for all; what failed."""
    if not kills:
        return []
    outcomes = await asyncio.gather(*kills, return_exceptions=True)  # type: ignore[call-overload] # coroutines
    return [each for each in outcomes if isinstance(each, Exception)]
