"""Starts one container: image, create, start and postStart hook, with the events of each.

A container that fails to start waits, with the reason in its status (`ContainerStartError`). A container that was
created but not started, because the kubelet died in between, is started as it is and counts no restart.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime

from podlife.aio import finish_despite_cancel
from podlife.clock import Clock
from podlife.kubelet.envvars import ContainerConfigError, DownwardContext
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
from podlife.kubelet.kuberuntime.image_manager import ImageError, ImageManager
from podlife.kubelet.kuberuntime.kill_container import FAILED_POST_START_HOOK, ContainerKiller, KillRequest
from podlife.kubelet.kuberuntime.reason_cache import StartFailure
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

log = logging.getLogger(__name__)


class ContainerStartError(ContainerRuntimeError):
    """`failure` is shown in the container's waiting state; a retry before `until` is useless."""

    def __init__(self, name: str, failure: StartFailure, until: datetime | None = None) -> None:
        super().__init__(f'failed to "StartContainer" for "{name}" with {failure.reason}: {failure.message}')
        self.failure = failure
        self.until = until


@dataclass(frozen=True, slots=True)
class SandboxContext:
    """Where a container is started: the sandbox, the pod's observed state, and values for downward-API fields."""

    sandbox_id: str
    observed: ObservedPod
    context: DownwardContext

    @property
    def pod_ip(self) -> str:
        return next(iter(self.context.pod_ips), "")


@dataclass(eq=False)
class ContainerStarter:
    runtime: Runtime
    images: ImageManager
    configs: ContainerConfigs
    hooks: Hooks
    killer: ContainerKiller
    events: PodEvents
    clock: Clock
    backoff: Backoff

    async def start(self, pod: Pod, container: Container, sandbox: SandboxContext) -> None:
        """Raises `ContainerStartError`."""
        self._check_crash_loop(pod, container, sandbox.observed)
        name = container["name"]
        container_id = self._created_before(container, sandbox)
        if container_id is None:
            container_id = await self._create(pod, container, sandbox)
        try:
            await finish_despite_cancel(self.runtime.start_container(container_id), name=f"start {name}")
        except ConflictInRuntimeError as error:
            # An earlier kubelet started the container; the next observation shows its state.
            raise ContainerStartError(name, StartFailure("RunContainerError", str(error))) from error
        except (ContainerRuntimeError, OSError) as error:
            self._warn(pod, container, "Failed", f"Error: {error}", container_id)
            raise ContainerStartError(name, StartFailure("RunContainerError", str(error))) from error
        self.events.container(pod, container, "Started", "Container started")
        await self._run_hook(pod, container, container_id, sandbox)

    def _check_crash_loop(self, pod: Pod, container: Container, observed: ObservedPod) -> None:
        """Make a container that keeps failing wait before its next start (RB-04)."""
        last = observed.last_exited(container["name"])
        finished_at = None if last is None else last.finished_at
        loop = crash_loop(self.backoff, pod, container, finished_at, self.clock.now())
        if loop is None:
            return
        self.events.container(pod, container, BACK_OFF, loop.event, is_warning=True)
        raise ContainerStartError(
            container["name"], StartFailure(CRASH_LOOP_BACK_OFF, loop.message), loop.until
        )

    def _created_before(self, container: Container, sandbox: SandboxContext) -> str | None:
        newest = sandbox.observed.newest.get(container["name"])
        if newest is None or newest.state is not ContainerState.CREATED:
            return None
        is_fit = newest.sandbox_id == sandbox.sandbox_id and not has_changed(container, newest)
        return newest.id if is_fit else None

    async def _create(self, pod: Pod, container: Container, sandbox: SandboxContext) -> str:
        name = container["name"]
        try:
            image_ref = await self.images.ensure(pod, container)
        except ImageError as error:
            self._warn(pod, container, "Failed", f"Error: {error.failure.reason}")
            raise ContainerStartError(name, error.failure) from error
        newest = sandbox.observed.newest.get(name)
        attempt = restart_count(
            None if newest is None else newest.config.attempt,
            self.configs.log_directory.names(pod, name) if newest is None else (),
        )
        try:
            config = await self.configs.container(
                pod, container, ContainerInstance(attempt, image_ref, sandbox.context)
            )
        except ContainerConfigError as error:
            self._warn(pod, container, "Failed", f"Error: {error}")
            raise ContainerStartError(name, StartFailure(error.reason, str(error))) from error
        try:
            creation = self.runtime.create_container(sandbox.sandbox_id, config)
            container_id = await finish_despite_cancel(creation, name=f"create {name}")
        except (ContainerRuntimeError, OSError) as error:
            self._warn(pod, container, "Failed", f"Error: {error}")
            raise ContainerStartError(name, StartFailure("CreateContainerError", str(error))) from error
        self.events.container(pod, container, "Created", "Container created")
        return container_id

    async def _run_hook(
        self, pod: Pod, container: Container, container_id: str, sandbox: SandboxContext
    ) -> None:
        """Kill the container if its postStart hook fails (KC-17)."""
        handler = (container.get("lifecycle") or {}).get("postStart")
        if not handler:
            return
        try:
            await self.hooks.run(pod, container, container_id, handler, pod_ip=sandbox.pod_ip)
        except Exception as error:
            # Whatever the hook raised, the container must not keep running without it.
            why = str(error) if isinstance(error, HookError) else repr(error)
            log.warning("postStart hook of container %s failed: %s", container["name"], why)
            self._warn(pod, container, *FAILED_POST_START_HOOK)
            await self._kill(pod, container_id, sandbox)
            failure = StartFailure("PostStartHookError", why)
            raise ContainerStartError(container["name"], failure) from error

    async def _kill(self, pod: Pod, container_id: str, sandbox: SandboxContext) -> None:
        try:
            known: ContainerStatus = await self.runtime.container_status(container_id)
            kill = KillRequest(FAILED_POST_START_HOOK[0], pod_ip=sandbox.pod_ip)
            await self.killer.kill_container(pod, known, kill)
        except ContainerRuntimeError as error:
            log.warning("container could not be killed after its postStart hook failed: %s", error)

    def _warn(
        self, pod: Pod, container: Container, reason: str, message: str, container_id: str = ""
    ) -> None:
        self.events.container(pod, container, reason, message, is_warning=True, container_id=container_id)
