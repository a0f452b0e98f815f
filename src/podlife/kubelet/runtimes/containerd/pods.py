"""Changes a pod's sandbox and containers in the daemon.

A sandbox is run, stopped for good and removed with its containers; a container is created, started once, stopped with
a grace period and removed with its termination message file.
"""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path

import msgspec

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerRuntimeError,
    ContainerState,
    NotFoundInRuntimeError,
    Resources,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
    StartContainerError,
)
from podlife.kubelet.runtimes.preconditions import (
    check_memory_usage,
    check_ready,
    check_running,
    is_limited_further,
    log_path_of,
    make_private,
    started_before,
)

from .client import CALL_SECONDS, ContainerdSettings, CriClient
from .reader import StateReader
from .requests import ContainerRecord, container_request, linux_resources, sandbox_request
from .state_diff import ObservedContainer, ObservedSandbox, StateDiff
from .statuses import make_file, termination_file

log = logging.getLogger(__name__)

# Time after the grace period for the kernel to kill the container.
_KILL_SECONDS = 60.0
# Three years: larger values overflow the daemon's timer.
_MAX_GRACE_SECONDS = 10**8
_REMOVAL_SECONDS = 0.05
_TRANSIENT_STATES = ("removing state", "starting state")
# A sandbox may have to wait for its network.
_SANDBOX_SECONDS = 2 * CALL_SECONDS


class Pods:
    def __init__(
        self, client: CriClient, state: StateDiff, reader: StateReader, settings: ContainerdSettings
    ) -> None:
        self._client = client
        self._state = state
        self._reader = reader
        self._settings = settings
        # Sandboxes that accept no more creates and starts.
        self._closed: set[str] = set()

    def close(self, sandbox_id: str) -> None:
        """Refuse to create or start containers in it from now on."""
        if self._state.has_sandbox(sandbox_id):
            self._closed.add(sandbox_id)

    async def _ready(self, sandbox_id: str) -> SandboxStatus:
        status = await self._reader.sandbox(sandbox_id)
        check_ready(sandbox_id, SandboxState.NOT_READY if sandbox_id in self._closed else status.state)
        return status

    async def run_sandbox(self, config: SandboxConfig) -> str:
        if config.log_directory is not None:
            make_private(Path(config.log_directory))
        try:
            response = await self._client.call(
                "RunPodSandbox",
                config=sandbox_request(config, self._settings),
                runtime_handler=self._settings.runtime_handler,
                seconds=_SANDBOX_SECONDS,
            )
        except ConflictInRuntimeError as error:
            raise ConflictInRuntimeError(
                f"attempt {config.attempt} at pod {config.namespace}/{config.name} has a sandbox: {error}"
            ) from None
        sandbox_id = str(response.pod_sandbox_id)
        self._state.observe_sandbox(ObservedSandbox(sandbox_id, config.pod_uid, SandboxState.READY))
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        if not await self._reader.is_our_sandbox(sandbox_id):
            self._reader.forget_sandbox(sandbox_id)
            return
        try:
            await self._client.call("StopPodSandbox", pod_sandbox_id=sandbox_id, seconds=_SANDBOX_SECONDS)
        except NotFoundInRuntimeError:
            self._reader.forget_sandbox(sandbox_id)
            return
        for container_or_sandbox_id in (sandbox_id, *self._state.containers_in(sandbox_id)):
            await self._reader.refresh(container_or_sandbox_id)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        if not await self._reader.is_our_sandbox(sandbox_id):
            return
        for status in await self._reader.containers(sandbox_id=sandbox_id):
            await self.remove(status.id)
        try:
            await self._client.call("RemovePodSandbox", pod_sandbox_id=sandbox_id, seconds=_SANDBOX_SECONDS)
        except NotFoundInRuntimeError:
            log.debug("sandbox %s was gone already", sandbox_id)
        self._reader.forget_sandbox(sandbox_id)
        self._closed.discard(sandbox_id)

    async def create(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = await self._ready(sandbox_id)
        log_path = log_path_of(sandbox.config, config)
        record = ContainerRecord(
            config, sandbox.id, sandbox.config.pod_uid, str(log_path) if log_path else None
        )
        # Validate before creating a file: an invalid request leaves nothing behind.
        container_request(sandbox.config, record, self._settings)
        if log_path is not None:
            make_private(log_path.parent)
        if config.termination_message_path:
            path = str(make_file(self._settings.termination_folder).absolute())
            record = msgspec.structs.replace(record, termination_file=path)
        try:
            response = await self._client.call(
                "CreateContainer",
                pod_sandbox_id=sandbox.id,
                config=container_request(sandbox.config, record, self._settings),
                sandbox_config=sandbox_request(sandbox.config, self._settings),
            )
        except ContainerRuntimeError as error:
            if not isinstance(error, RuntimeUnavailableError):
                _remove_file(record.termination_file)
            raise _create_failure(config, error) from None
        container_id = str(response.container_id)
        observed = ObservedContainer(container_id, sandbox.id, sandbox.config.pod_uid, ContainerState.CREATED)
        self._state.observe_container(observed)
        return container_id

    async def start(self, container_id: str) -> None:
        """Events are held back until it is known whether the container ever ran."""
        status = await self._reader.container(container_id)
        await self._ready(status.sandbox_id)
        if status.state is not ContainerState.CREATED:
            raise started_before(status.config.name)
        self._state.begin_start(status.id)
        is_running = False
        try:
            await self._client.call("StartContainer", container_id=status.id)
            is_running = True
        except (RuntimeUnavailableError, NotFoundInRuntimeError):
            raise
        except ContainerRuntimeError as error:
            raise StartContainerError(f"container {status.config.name!r} cannot start: {error}") from None
        finally:
            self._state.finish_start(status.id, is_running=is_running)

    async def stop(self, container_id: str, grace_seconds: float) -> None:
        grace = min(max(grace_seconds, 0.0), _MAX_GRACE_SECONDS)
        whole = math.ceil(grace)
        try:
            async with asyncio.timeout(None if whole == grace else grace):
                await self._request_stop(container_id, whole)
        except TimeoutError:
            # CRI's timeout is in whole seconds.
            await self._request_stop(container_id, 0)
        await self._reader.refresh(container_id)

    async def update(self, container_id: str, resources: Resources) -> None:
        status = await self._reader.container(container_id)
        check_running(status.config.name, status.state)
        if is_limited_further(resources, status.config.resources):
            stats = (await self._client.call("ContainerStats", container_id=container_id)).stats
            check_memory_usage(status.config.name, resources, stats.memory.usage_bytes.value)
        await self._client.call(
            "UpdateContainerResources", container_id=container_id, linux=linux_resources(resources)
        )
        await self._reader.note_resources(container_id, resources)

    async def _request_stop(self, container_id: str, grace_seconds: int) -> None:
        seconds = grace_seconds + _KILL_SECONDS
        try:
            await self._client.call(
                "StopContainer", container_id=container_id, timeout=grace_seconds, seconds=seconds
            )
        except NotFoundInRuntimeError:
            log.debug("container %s was gone before it stopped", container_id)

    async def remove(self, container_id: str) -> None:
        try:
            raw = await self._reader.raw_status(container_id)
        except NotFoundInRuntimeError:
            return
        await self._reader.refresh(container_id)
        await self._remove_from_daemon(container_id)
        self._reader.forget_container(container_id)
        _remove_file(termination_file(raw))

    async def _remove_from_daemon(self, container_id: str) -> None:
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                while not await self._is_removed(container_id):  # noqa: ASYNC110 - another process has no event
                    await asyncio.sleep(_REMOVAL_SECONDS)
        except TimeoutError:
            raise RuntimeUnavailableError(f"removal of container {container_id} timed out") from None

    async def _is_removed(self, container_id: str) -> bool:
        try:
            await self._client.call("RemoveContainer", container_id=container_id)
        except NotFoundInRuntimeError:
            return True
        except RuntimeUnavailableError:
            raise
        except ContainerRuntimeError as error:
            # Another removal, or a start by the previous kubelet, is in progress: try again.
            if not any(state in str(error) for state in _TRANSIENT_STATES):
                raise
            return False
        return True


def _create_failure(config: ContainerConfig, error: ContainerRuntimeError) -> ContainerRuntimeError:
    if isinstance(error, ConflictInRuntimeError):
        text = f"attempt {config.attempt} at container {config.name!r} exists: {error}"
        return ConflictInRuntimeError(text)
    if isinstance(error, RuntimeUnavailableError):
        return error
    return ContainerRuntimeError(f"container {config.name!r} cannot be created: {error}")


def _remove_file(path: str) -> None:
    if path:
        Path(path).unlink(missing_ok=True)
