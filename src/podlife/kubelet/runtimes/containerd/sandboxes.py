"""What is done to sandboxes: made ready, stopped for good, removed with everything in them."""

from __future__ import annotations

import logging
from pathlib import Path

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    NotFoundInRuntimeError,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.kubelet.runtimes.preconditions import check_ready, make_private

from .client import CALL_SECONDS, ContainerdSettings, CriClient
from .containers import Containers
from .reader import StateReader
from .requests import sandbox_request
from .state_diff import SeenSandbox, StateDiff

log = logging.getLogger(__name__)

# A sandbox may have to wait for its network.
_SANDBOX_SECONDS = 2 * CALL_SECONDS


class Sandboxes:
    def __init__(
        self, client: CriClient, mirror: StateDiff, reading: StateReader, settings: ContainerdSettings
    ) -> None:
        self._client = client
        self._mirror = mirror
        self._reading = reading
        self._settings = settings
        self._closed: set[str] = set()

    def close(self, sandbox_id: str) -> None:
        """From here on nothing is created or started in it."""
        if self._mirror.has_sandbox(sandbox_id):
            self._closed.add(sandbox_id)

    async def ready(self, sandbox_id: str) -> SandboxStatus:
        status = await self._reading.sandbox(sandbox_id)
        check_ready(sandbox_id, SandboxState.NOT_READY if sandbox_id in self._closed else status.state)
        return status

    async def run(self, config: SandboxConfig) -> str:
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

    async def stop(self, sandbox_id: str) -> None:
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

    async def remove(self, sandbox_id: str, containers: Containers) -> None:
        if not await self._reading.is_our_sandbox(sandbox_id):
            return
        for status in await self._reading.containers(sandbox_id=sandbox_id):
            await containers.remove(status.id)
        try:
            await self._client.call("RemovePodSandbox", pod_sandbox_id=sandbox_id, seconds=_SANDBOX_SECONDS)
        except NotFoundInRuntimeError:
            log.debug("sandbox %s was gone already", sandbox_id)
        self._reading.forget_sandbox(sandbox_id)
        self._closed.discard(sandbox_id)
