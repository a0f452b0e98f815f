"""Starting one container: its image, its making, its start and its postStart hook, with what is told of each.

A container that could not be started is told of as waiting, with the reason (`ContainerStartError`). One that was made before
and never started is started as it is: an agent that died in between does not cost it a restart.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from podlife.clock import Clock
from podlife.kubelet.envvars.downward_api import ContainerConfigError, DownwardContext
from podlife.kubelet.finish_despite_cancel import to_its_end
from podlife.kubelet.interfaces import HookError, Hooks
from podlife.kubelet.kuberuntime.backoff import (
    BACK_OFF,
    CRASH_LOOP_BACK_OFF,
    Backoff,
    crash_loop,
    restart_count,
)
from podlife.kubelet.kuberuntime.compute_pod_actions import has_changed
from podlife.kubelet.kuberuntime.container_config import ContainerConfigs, ContainerInstance
from podlife.kubelet.kuberuntime.grace_period import FAILED_POST_START_HOOK
from podlife.kubelet.kuberuntime.image_manager import ImageError, ImageManager
from podlife.kubelet.kuberuntime.kill_container import ContainerKiller, KillRequest
from podlife.kubelet.kuberuntime.log_directory import LogDirectory
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod_events import PodEvents
from podlife.kubelet.pod_fields import Container, Pod
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    Runtime,
)
from podlife.kubelet.status.container_statuses import StartFailure

__all__ = ["ContainerStartError", "ContainerStarter", "SandboxContext"]

log = logging.getLogger(__name__)


class ContainerStartError(ContainerRuntimeError):
    """A container could not be started; `failure` is what it shows while it waits. With `until` there is no use in
    trying sooner."""

    def __init__(self, name: str, failure: StartFailure, until: datetime | None = None) -> None:
        super().__init__(f'failed to "StartContainer" for "{name}" with {failure.reason}: {failure.message}')
        self.failure = failure
        self.until = until


@dataclass(frozen=True, slots=True)
class SandboxContext:
    """Where a container is started: the sandbox, what was in it before, and what the container may be told of it."""

    sandbox_id: str
    observed: ObservedPod
    around: DownwardContext

    @property
    def pod_ip(self) -> str:
        return next(iter(self.around.pod_ips), "")


@dataclass(frozen=True, slots=True)
class Tools:
    """What starting a container takes."""

    runtime: Runtime
    images: ImageManager
    configs: ContainerConfigs
    hooks: Hooks
    killer: ContainerKiller
    telling: PodEvents
    logs: LogDirectory
    clock: Clock


class ContainerStarter:
    def __init__(self, tools: Tools, backoff: Backoff) -> None:
        self._tools = tools
        self._backoff = backoff

    async def start(self, pod: Pod, container: Container, place: SandboxContext) -> None:
        """Raises `ContainerStartError`."""
        self._wait_if_it_crashes(pod, container, place.observed)
        name = container["name"]
        container_id = self._made_before(container, place)
        if container_id is None:
            container_id = await self._make(pod, container, place)
        runtime = self._tools.runtime
        try:
            await to_its_end(runtime.start_container(container_id), f"start {name}")
        except ConflictInRuntimeError as error:
            # It was started once, by an agent before: what became of it the next look tells.
            raise ContainerStartError(name, StartFailure("RunContainerError", str(error))) from error
        except (ContainerRuntimeError, OSError) as error:
            self._warn(pod, container, "Failed", f"Error: {error}", container_id)
            raise ContainerStartError(name, StartFailure("RunContainerError", str(error))) from error
        self._tools.telling.container(pod, container, "Started", "Container started")
        await self._run_hook(pod, container, container_id, place)

    def _wait_if_it_crashes(self, pod: Pod, container: Container, observed: ObservedPod) -> None:
        """RB-04."""
        last = observed.last_exited(container["name"])
        finished_at = None if last is None else last.finished_at
        loop = crash_loop(self._backoff, pod, container, finished_at, self._tools.clock.now())
        if loop is None:
            return
        self._tools.telling.container(pod, container, BACK_OFF, loop.event, is_warning=True)
        raise ContainerStartError(
            container["name"], StartFailure(CRASH_LOOP_BACK_OFF, loop.message), loop.until
        )

    def _made_before(self, container: Container, place: SandboxContext) -> str | None:
        newest = place.observed.newest.get(container["name"])
        if newest is None or newest.state is not ContainerState.CREATED:
            return None
        is_fit = newest.sandbox_id == place.sandbox_id and not has_changed(container, newest)
        return newest.id if is_fit else None

    async def _make(self, pod: Pod, container: Container, place: SandboxContext) -> str:
        tools, name = self._tools, container["name"]
        try:
            image_ref = await tools.images.ensure(pod, container)
        except ImageError as error:
            self._warn(pod, container, "Failed", f"Error: {error.failure.reason}")
            raise ContainerStartError(name, error.failure) from error
        newest = place.observed.newest.get(name)
        attempt = restart_count(
            None if newest is None else newest.config.attempt,
            tools.logs.names(pod, name) if newest is None else (),
        )
        try:
            config = await tools.configs.container(
                pod, container, ContainerInstance(attempt, image_ref, place.around)
            )
        except ContainerConfigError as error:
            self._warn(pod, container, "Failed", f"Error: {error}")
            raise ContainerStartError(name, StartFailure(error.reason, str(error))) from error
        try:
            made = tools.runtime.create_container(place.sandbox_id, config)
            container_id = await to_its_end(made, f"create {name}")
        except (ContainerRuntimeError, OSError) as error:
            self._warn(pod, container, "Failed", f"Error: {error}")
            raise ContainerStartError(name, StartFailure("CreateContainerError", str(error))) from error
        tools.telling.container(pod, container, "Created", "Container created")
        return container_id

    async def _run_hook(
        self, pod: Pod, container: Container, container_id: str, place: SandboxContext
    ) -> None:
        """A postStart hook that fails ends the container (KC-17)."""
        handler = (container.get("lifecycle") or {}).get("postStart")
        if not handler:
            return
        try:
            await self._tools.hooks.run(pod, container, container_id, handler, pod_ip=place.pod_ip)
        except Exception as error:
            # Whatever is wrong with the hook, the container must not run on without it.
            why = str(error) if isinstance(error, HookError) else repr(error)
            log.warning("postStart hook of container %s failed: %s", container["name"], why)
            self._warn(pod, container, *FAILED_POST_START_HOOK)
            await self._kill(pod, container_id, place)
            failure = StartFailure("PostStartHookError", why)
            raise ContainerStartError(container["name"], failure) from error

    async def _kill(self, pod: Pod, container_id: str, place: SandboxContext) -> None:
        try:
            known: ContainerStatus = await self._tools.runtime.container_status(container_id)
            kill = KillRequest(FAILED_POST_START_HOOK[0], pod_ip=place.pod_ip)
            await self._tools.killer.kill_container(pod, known, kill)
        except ContainerRuntimeError as error:
            log.warning("a container whose postStart hook failed is not ended yet: %s", error)

    def _warn(
        self, pod: Pod, container: Container, reason: str, message: str, container_id: str = ""
    ) -> None:
        self._tools.telling.container(
            pod, container, reason, message, is_warning=True, container_id=container_id
        )
