"""Brings the sandboxes and containers of a pod to their desired state.

`sync_pod` executes what `compute_pod_actions` decided, in order: kill, create the sandbox, start containers. A
container that fails to start is recorded in `reasons` for the pod's status and does not block the others. `kill_pod`
stops everything of a pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from podlife.aio import finish_despite_cancel
from podlife.clock import Clock
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.interfaces import Hooks
from podlife.kubelet.kuberuntime.backoff import Backoff
from podlife.kubelet.kuberuntime.compute_pod_actions import PodActions
from podlife.kubelet.kuberuntime.container_config import ContainerConfigs
from podlife.kubelet.kuberuntime.image_manager import ImageManager
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller, KillRequest
from podlife.kubelet.kuberuntime.reason_cache import ReasonCache
from podlife.kubelet.kuberuntime.start_container import ContainerStarter, ContainerStartError, SandboxContext
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of, is_sidecar
from podlife.kubelet.runtime import ContainerRuntimeError, HasNetwork, Runtime


class SandboxError(ContainerRuntimeError):
    """The pod has no sandbox to run in."""


@dataclass(slots=True)
class PodSyncResult:
    """Whether the sync changed anything in the runtime, which containers failed to start, and why one could not be
    resized. Runtimes report no event of a resize."""

    has_acted: bool = False
    has_resized: bool = False
    failures: list[ContainerStartError] = field(default_factory=list)
    resize_failure: ContainerRuntimeError | None = None


class KubeRuntimeManager:
    def __init__(
        self,
        runtime: Runtime,
        configs: ContainerConfigs,
        hooks: Hooks,
        events: PodEvents,
        clock: Clock,
        backoff: Backoff,
    ) -> None:
        self.runtime = runtime
        self.reasons = ReasonCache()
        self.log_directory = configs.log_directory
        self._configs = configs
        self._events = events
        self._clock = clock
        self._backoff = backoff
        self._images = ImageManager(runtime, clock, events)
        self._killer = ContainerKiller(runtime, hooks, events)
        self._starter = ContainerStarter(
            runtime, self._images, configs, hooks, self._killer, events, clock=clock, backoff=backoff
        )

    @property
    def network_problem(self) -> str:
        return self.runtime.network_problem if isinstance(self.runtime, HasNetwork) else ""

    async def kill_pod(
        self, pod: Pod | None, observed: ObservedPod, *, grace_seconds: int | None = None
    ) -> None:
        """Without a pod, each container is stopped according to its labels (KC-02). Raises `PodKillError`."""
        await self._killer.kill_pod(pod, observed, grace_seconds=grace_seconds)

    def forget(self, uid: str) -> None:
        self._killer.forget(uid)
        self.reasons.forget(uid)

    def collect_backoffs(self) -> None:
        """Forget expired backoffs (RB-08)."""
        self._backoff.collect(self._clock.now())
        self._images.collect()

    async def sync_pod(
        self, pod: Pod, observed: ObservedPod, actions: PodActions, context: DownwardContext
    ) -> PodSyncResult:
        """Raises if a kill or the sandbox fails; containers that fail to start are in the result."""
        result = PodSyncResult()
        if actions.create_sandbox and actions.sandbox_id:
            message = "Pod sandbox changed, it will be killed and re-created."
            self._events.pod(pod, "SandboxChanged", message)
        if actions.kill_pod:
            # Only if something may be running: otherwise every sync would stop the pod again.
            if observed.ready_sandboxes or any(each.could_run for each in observed.containers):
                result.has_acted = True
                await self._killer.kill_pod(pod, observed)
            if not actions.create_sandbox:
                return result
            observed = await self._without_init_containers(pod, observed)
        else:
            await self._kill_containers(pod, observed, actions, result)
            await self._resize_containers(actions, result)
        sandbox = await self._sandbox(pod, observed, actions, context, result)
        if sandbox is not None:
            await self._start_all(pod, actions, sandbox, result)
        return result

    async def _kill_containers(
        self, pod: Pod, observed: ObservedPod, actions: PodActions, result: PodSyncResult
    ) -> None:
        known = {each.id: each for each in observed.containers}
        pod_ip = next(iter(observed.ips), "")
        for each in actions.kill:
            result.has_acted = True
            kill = KillRequest(each.message, each.reason, pod_ip=pod_ip)
            await self._killer.kill_container(pod, known[each.container_id], kill)
        for container_id in actions.reset:
            result.has_acted = True
            if known[container_id].could_run:
                kill = KillRequest("killing", override_seconds=0)
                await self._killer.kill_container(pod, known[container_id], kill)
            await self.runtime.remove_container(container_id)

    async def _resize_containers(self, actions: PodActions, result: PodSyncResult) -> None:
        """The first failure ends it: the next sync tries again."""
        for each in actions.resize:
            result.has_resized = True
            try:
                await finish_despite_cancel(
                    self.runtime.update_container_resources(each.container_id, each.resources),
                    name=f"resize {each.container_id}",
                )
            except ContainerRuntimeError as error:
                result.resize_failure = error
                return

    async def _without_init_containers(self, pod: Pod, observed: ObservedPod) -> ObservedPod:
        """A new sandbox runs the init containers again; remove the old ones, which would be taken for them."""
        names = {each["name"] for each in init_containers_of(pod)}
        for each in observed.containers:
            if each.config.name in names:
                await self.runtime.remove_container(each.id)
        return ObservedPod(
            observed.sandboxes, tuple(each for each in observed.containers if each.config.name not in names)
        )

    async def _sandbox(
        self,
        pod: Pod,
        observed: ObservedPod,
        actions: PodActions,
        context: DownwardContext,
        result: PodSyncResult,
    ) -> SandboxContext | None:
        """None if no container is to be started."""
        sandbox_id, ips = actions.sandbox_id, observed.ips
        if actions.create_sandbox:
            result.has_acted = True
            sandbox_id = await self._create_sandbox(pod, actions.attempt)
            ips = (await self.runtime.sandbox_status(sandbox_id)).ips
        elif not (actions.start or actions.start_init or actions.start_ephemeral):
            return None
        if pod["spec"].get("hostNetwork"):
            ips = ips or context.host_ips
        return SandboxContext(sandbox_id, observed, replace(context, pod_ips=ips))

    async def _create_sandbox(self, pod: Pod, attempt: int) -> str:
        config = self._configs.sandbox(pod, attempt)
        try:
            return await finish_despite_cancel(
                self.runtime.run_sandbox(config), name=f"sandbox of {config.name}"
            )
        except ContainerRuntimeError as error:
            message = f"Failed to create pod sandbox: {error}"
            self._events.pod(pod, "FailedCreatePodSandBox", message, is_warning=True)
            raise SandboxError(message) from error

    async def _start_all(
        self, pod: Pod, actions: PodActions, sandbox: SandboxContext, result: PodSyncResult
    ) -> None:
        """An init container that fails to start blocks all containers after it; a sidecar does not."""
        ephemeral = pod["spec"].get("ephemeralContainers") or ()
        for container in _named(ephemeral, actions.start_ephemeral):
            await self._start(pod, container, sandbox, result)
        for container in _named(init_containers_of(pod), actions.start_init):
            if not await self._start(pod, container, sandbox, result) and not is_sidecar(container):
                return
        for container in _named(containers_of(pod), actions.start):
            await self._start(pod, container, sandbox, result)

    async def _start(
        self, pod: Pod, container: Container, sandbox: SandboxContext, result: PodSyncResult
    ) -> bool:
        uid, name = pod["metadata"]["uid"], container["name"]
        try:
            await self._starter.start(pod, container, sandbox)
        except ContainerStartError as error:
            self.reasons.add(uid, name, error.failure)
            result.failures.append(error)
            return False
        result.has_acted = True
        self.reasons.remove(uid, name)
        return True


def _named(containers: Iterable[Container], names: tuple[str, ...]) -> list[Container]:
    """In the order of the names."""
    by_name = {each["name"]: each for each in containers}
    return [by_name[name] for name in names]
