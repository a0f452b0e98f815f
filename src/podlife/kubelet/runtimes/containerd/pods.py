"""What is done to a pod's sandbox and containers in the daemon.

Sandboxes are made ready, stopped for good and removed with everything in them; containers are created, started once,
stopped with grace and removed with what belongs to them.
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
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
    StartContainerError,
)
from podlife.kubelet.runtimes.preconditions import check_ready, log_path_of, make_private, started_before

from .client import CALL_SECONDS, ContainerdSettings, CriClient
from .reader import StateReader
from .requests import ContainerNote, container_request, sandbox_request
from .state_diff import SeenContainer, SeenSandbox, StateDiff
from .statuses import make_file, termination_file

log = logging.getLogger(__name__)

# How much longer than its grace a container may take: the kernel, not the container, is at work then.
_KILL_SECONDS = 60.0
# Three years; more than that no clock of the daemon's takes.
_MOST_GRACE_SECONDS = 10**8
_REMOVAL_SECONDS = 0.05
_PASSING_STATES = ("removing state", "starting state")
# A sandbox may have to wait for its network.
_SANDBOX_SECONDS = 2 * CALL_SECONDS


class Pods:
    def __init__(
        self, client: CriClient, mirror: StateDiff, reading: StateReader, settings: ContainerdSettings
    ) -> None:
        self._client = client
        self._mirror = mirror
        self._reading = reading
        self._settings = settings
        # Sandboxes in which nothing is created or started any more.
        self._closed: set[str] = set()

    def close(self, sandbox_id: str) -> None:
        """From here on nothing is created or started in it."""
        if self._mirror.has_sandbox(sandbox_id):
            self._closed.add(sandbox_id)

    async def _ready(self, sandbox_id: str) -> SandboxStatus:
        status = await self._reading.sandbox(sandbox_id)
        check_ready(sandbox_id, SandboxState.NOT_READY if sandbox_id in self._closed else status.state)
        return status

    async def run_sandbox(self, config: SandboxConfig) -> str:
        if config.log_directory is not None:
            make_private(Path(config.log_directory))
        try:
            answer = await self._client.call(
                "RunPodSandbox",
                config=sandbox_request(config, self._settings),
                runtime_handler=self._settings.runtime_handler,
                seconds=_SANDBOX_SECONDS,
            )
        except ConflictInRuntimeError as error:
            raise ConflictInRuntimeError(
                f"attempt {config.attempt} at pod {config.namespace}/{config.name} has a sandbox: {error}"
            ) from None
        sandbox_id = str(answer.pod_sandbox_id)
        self._mirror.saw_sandbox(SeenSandbox(sandbox_id, config.pod_uid, SandboxState.READY))
        return sandbox_id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        if not await self._reading.is_our_sandbox(sandbox_id):
            self._reading.forget_sandbox(sandbox_id)
            return
        try:
            await self._client.call("StopPodSandbox", pod_sandbox_id=sandbox_id, seconds=_SANDBOX_SECONDS)
        except NotFoundInRuntimeError:
            self._reading.forget_sandbox(sandbox_id)
            return
        for container_or_sandbox_id in (sandbox_id, *self._mirror.containers_in(sandbox_id)):
            await self._reading.look_at(container_or_sandbox_id)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        if not await self._reading.is_our_sandbox(sandbox_id):
            return
        for status in await self._reading.containers(sandbox_id=sandbox_id):
            await self.remove(status.id)
        try:
            await self._client.call("RemovePodSandbox", pod_sandbox_id=sandbox_id, seconds=_SANDBOX_SECONDS)
        except NotFoundInRuntimeError:
            log.debug("sandbox %s was gone already", sandbox_id)
        self._reading.forget_sandbox(sandbox_id)
        self._closed.discard(sandbox_id)

    async def create(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = await self._ready(sandbox_id)
        log_path = log_path_of(sandbox.config, config)
        note = ContainerNote(config, sandbox.id, sandbox.config.pod_uid, str(log_path) if log_path else None)
        # Looked at before a file is made for it: what cannot be asked for leaves nothing behind.
        container_request(sandbox.config, note, self._settings)
        if log_path is not None:
            make_private(log_path.parent)
        if config.termination_message_path:
            path = str(make_file(self._settings.termination_folder).absolute())
            note = msgspec.structs.replace(note, termination_file=path)
        try:
            answer = await self._client.call(
                "CreateContainer",
                pod_sandbox_id=sandbox.id,
                config=container_request(sandbox.config, note, self._settings),
                sandbox_config=sandbox_request(sandbox.config, self._settings),
            )
        except ContainerRuntimeError as error:
            if not isinstance(error, RuntimeUnavailableError):
                _remove_file(note.termination_file)
            raise _create_failure(config, error) from None
        container_id = str(answer.container_id)
        seen = SeenContainer(container_id, sandbox.id, sandbox.config.pod_uid, ContainerState.CREATED)
        self._mirror.saw_container(seen)
        return container_id

    async def start(self, container_id: str) -> None:
        """What happens to it meanwhile is held back until it is known whether it ever ran."""
        status = await self._reading.container(container_id)
        await self._ready(status.sandbox_id)
        if status.state is not ContainerState.CREATED:
            raise started_before(status.config.name)
        self._mirror.starts(status.id)
        it_runs = False
        try:
            await self._client.call("StartContainer", container_id=status.id)
            it_runs = True
        except (RuntimeUnavailableError, NotFoundInRuntimeError):
            raise
        except ContainerRuntimeError as error:
            raise StartContainerError(f"container {status.config.name!r} cannot start: {error}") from None
        finally:
            self._mirror.started(status.id, it_runs=it_runs)

    async def stop(self, container_id: str, grace_seconds: float) -> None:
        grace = min(max(grace_seconds, 0.0), _MOST_GRACE_SECONDS)
        whole = math.ceil(grace)
        try:
            async with asyncio.timeout(None if whole == grace else grace):
                await self._ask_to_stop(container_id, whole)
        except TimeoutError:
            # CRI knows whole seconds only.
            await self._ask_to_stop(container_id, 0)
        await self._reading.look_at(container_id)

    async def _ask_to_stop(self, container_id: str, grace_seconds: int) -> None:
        seconds = grace_seconds + _KILL_SECONDS
        try:
            await self._client.call(
                "StopContainer", container_id=container_id, timeout=grace_seconds, seconds=seconds
            )
        except NotFoundInRuntimeError:
            log.debug("container %s was gone before it stopped", container_id)

    async def remove(self, container_id: str) -> None:
        try:
            told = await self._reading.told_of(container_id)
        except NotFoundInRuntimeError:
            return
        await self._reading.look_at(container_id)
        await self._remove_from_daemon(container_id)
        self._reading.forget_container(container_id)
        _remove_file(termination_file(told))

    async def _remove_from_daemon(self, container_id: str) -> None:
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                while not await self._is_removed(container_id):  # noqa: ASYNC110 - another process has no event
                    await asyncio.sleep(_REMOVAL_SECONDS)
        except TimeoutError:
            raise RuntimeUnavailableError(f"container {container_id} is not removed") from None

    async def _is_removed(self, container_id: str) -> bool:
        try:
            await self._client.call("RemoveContainer", container_id=container_id)
        except NotFoundInRuntimeError:
            return True
        except RuntimeUnavailableError:
            raise
        except ContainerRuntimeError as error:
            # Somebody else removes it, or a kubelet before us had it started: that passes, here or there.
            if not any(state in str(error) for state in _PASSING_STATES):
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
