"""Bringing the containers of a pod to what they should be: what `actions_for` decides, carried out in its order.

Kill the pod or single containers, make a sandbox, start init containers, start the others. What fails is remembered for
the pod's status, and raised after everything else was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from podlife.kubelet.envvars.downward_api import DownwardContext
from podlife.kubelet.finish_despite_cancel import to_its_end
from podlife.kubelet.kuberuntime.compute_pod_actions import PodActions
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller, KillRequest
from podlife.kubelet.kuberuntime.start_container import (
    ContainerStarter,
    ContainerStartError,
    SandboxContext,
    Tools,
)
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_fields import (
    Container,
    Pod,
    containers_of,
    init_containers_of,
    is_sidecar,
)
from podlife.kubelet.runtime import ContainerRuntimeError, ContainerState
from podlife.kubelet.status.generate import StatusGenerator

__all__ = ["KubeRuntimeManager", "PodSyncResult", "SandboxError"]


class SandboxError(ContainerRuntimeError):
    """The pod has no sandbox to run in."""


class PodSyncResult:
    """What came of it."""

    def __init__(self) -> None:
        self.has_acted = False
        self.failures: list[ContainerStartError] = []


class KubeRuntimeManager:
    def __init__(
        self,
        tools: Tools,
        starter: ContainerStarter,
        statuses: StatusGenerator,
        around: Callable[[], DownwardContext],
    ) -> None:
        self._tools = tools
        self._killer: ContainerKiller = tools.killer
        self._starter = starter
        self._statuses = statuses
        self._around = around

    async def sync(self, pod: Pod, observed: ObservedPod, actions: PodActions) -> PodSyncResult:
        """Raises what ends the whole sync: a kill or a sandbox that failed."""
        done = PodSyncResult()
        if actions.create_sandbox and actions.sandbox_id:
            told = "Pod sandbox changed, it will be killed and re-created."
            self._tools.telling.pod(pod, "SandboxChanged", told)
        if actions.kill_pod:
            if _is_anything_left(observed):
                done.has_acted = True
                await self._killer.kill_pod(pod, observed)
            if not actions.create_sandbox:
                return done
            observed = await self._without_init_containers(pod, observed)
        else:
            await self._kill_some(pod, observed, actions, done)
        place = await self._place(pod, observed, actions, done)
        if place is not None:
            await self._start_all(pod, actions, place, done)
        return done

    async def _kill_some(
        self, pod: Pod, observed: ObservedPod, actions: PodActions, done: PodSyncResult
    ) -> None:
        known = {each.id: each for each in observed.containers}
        for each in actions.kill:
            done.has_acted = True
            kill = KillRequest(each.message, each.reason, pod_ip=_first_ip(observed))
            await self._killer.kill_container(pod, known[each.container_id], kill)
        for container_id in actions.reset:
            done.has_acted = True
            if known[container_id].state in (ContainerState.RUNNING, ContainerState.UNKNOWN):
                kill = KillRequest("killing", override_seconds=0)
                await self._killer.kill_container(pod, known[container_id], kill)
            await self._tools.runtime.remove_container(container_id)

    async def _without_init_containers(self, pod: Pod, observed: ObservedPod) -> ObservedPod:
        """In a new sandbox the init containers run again: the old ones would be taken for them."""
        names = {each["name"] for each in init_containers_of(pod)}
        for each in observed.containers:
            if each.config.name in names:
                await self._tools.runtime.remove_container(each.id)
        return ObservedPod(
            observed.sandboxes, tuple(each for each in observed.containers if each.config.name not in names)
        )

    async def _place(
        self, pod: Pod, observed: ObservedPod, actions: PodActions, done: PodSyncResult
    ) -> SandboxContext | None:
        sandbox_id, ips = actions.sandbox_id, _ips(observed)
        if actions.create_sandbox:
            done.has_acted = True
            sandbox_id = await self._make_sandbox(pod, actions.attempt)
            ips = (await self._tools.runtime.sandbox_status(sandbox_id)).ips
        elif not (actions.start or actions.start_init or actions.start_ephemeral):
            return None
        around = self._around()
        if pod["spec"].get("hostNetwork"):
            ips = ips or around.host_ips
        return SandboxContext(sandbox_id, observed, replace(around, pod_ips=ips))

    async def _make_sandbox(self, pod: Pod, attempt: int) -> str:
        config = self._tools.configs.sandbox(pod, attempt)
        try:
            return await to_its_end(self._tools.runtime.run_sandbox(config), f"sandbox of {config.name}")
        except ContainerRuntimeError as error:
            said = f"Failed to create pod sandbox: {error}"
            self._tools.telling.pod(pod, "FailedCreatePodSandBox", said, is_warning=True)
            raise SandboxError(said) from error

    async def _start_all(
        self, pod: Pod, actions: PodActions, place: SandboxContext, done: PodSyncResult
    ) -> None:
        """An init container that does not start keeps those after it, and the regular ones, from starting; a sidecar
        only keeps itself."""
        ephemeral = pod["spec"].get("ephemeralContainers") or ()
        for container in _named(ephemeral, actions.start_ephemeral):
            await self._start(pod, container, place, done)
        for container in _named(init_containers_of(pod), actions.start_init):
            if not await self._start(pod, container, place, done) and not is_sidecar(container):
                return
        for container in _named(containers_of(pod), actions.start):
            await self._start(pod, container, place, done)

    async def _start(
        self, pod: Pod, container: Container, place: SandboxContext, done: PodSyncResult
    ) -> bool:
        uid, name = pod["metadata"]["uid"], container["name"]
        try:
            await self._starter.start(pod, container, place)
        except ContainerStartError as error:
            self._statuses.note_failure(uid, name, error.failure)
            done.failures.append(error)
            return False
        done.has_acted = True
        self._statuses.note_start(uid, name)
        return True


def _named(containers: Iterable[Container], names: tuple[str, ...]) -> list[Container]:
    """In the order of the names."""
    by_name = {each["name"]: each for each in containers}
    return [by_name[name] for name in names]


def _is_anything_left(observed: ObservedPod) -> bool:
    """Something runs, or could: to kill what has ended would be to stop it again with every look."""
    return bool(observed.ready_sandboxes) or any(
        each.state in (ContainerState.RUNNING, ContainerState.UNKNOWN) for each in observed.containers
    )


def _ips(observed: ObservedPod) -> tuple[str, ...]:
    return next((each.ips for each in observed.ready_sandboxes if each.ips), ())


def _first_ip(observed: ObservedPod) -> str:
    return next(iter(_ips(observed)), "")
