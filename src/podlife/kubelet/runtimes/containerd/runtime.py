"""Runs containers with containerd, over CRI v1.

All state is in the daemon; this side caches the last observation. A call continues when its caller is cancelled. While
the daemon is down every call raises `RuntimeUnavailableError`; containers keep running, and their exit codes are
available once it is back. Only objects with this kubelet's label are listed or changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self, TypeVar

from podlife.aio import cancel_and_wait, spawn
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerStatus,
    ExecResult,
    ExecSession,
    PodConnection,
    Resources,
    RuntimeEvent,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxStatus,
)
from podlife.kubelet.runtimes.preconditions import FolderLock
from podlife.kubelet.runtimes.subscriptions import Subscriptions

from . import images
from .client import ContainerdSettings, CriClient
from .execution import ExecProcesses, attaching, connected_to_port, executing, run_command
from .pods import Pods
from .reader import StateReader
from .state_diff import StateDiff
from .statuses import remove_others
from .watch import DaemonWatch

log = logging.getLogger(__name__)

T = TypeVar("T")

_OPEN_SECONDS = 5.0
_CLOSE_SECONDS = 2.0


class PendingCalls:
    """Calls in flight to the daemon. A caller may stop waiting; the call continues, and its effect is observed.

    Calls within one sandbox can be awaited: nothing may be created or started in a sandbox after it was stopped.
    """

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], str] = {}

    async def run(self, call: Coroutine[Any, Any, T], name: str, *, within: str = "") -> T:
        """Returns the result of the call. `within` is the sandbox or container whose next call has to wait for it."""
        task = spawn(
            call, name=f"containerd call: {name}", on_failure=lambda error: log.debug("%s: %s", name, error)
        )
        self._tasks[task] = within
        task.add_done_callback(self._tasks.pop)
        return await asyncio.shield(task)

    async def wait_for(self, *within: str) -> None:
        """Wait until no call is pending there; every call has its own deadline."""
        while waiting := [task for task, where in self._tasks.items() if where in within]:
            await asyncio.wait(waiting)

    async def close(self) -> None:
        """Wait briefly for pending calls, then cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        await cancel_and_wait(*self._tasks)


class ContainerdRuntime:
    """The `containerd` runtime. Opening it raises ConfigError if another kubelet uses the folder or if grpc is not
    installed, but not if the daemon is unreachable."""

    name = "containerd"
    network_is_own = True

    def __init__(self, settings: ContainerdSettings) -> None:
        self._settings = settings
        self._client = CriClient(settings.socket)
        self._subscriptions = Subscriptions()
        self._state = StateDiff(self._subscriptions.publish)
        self._reader = StateReader(self._client, self._state, settings)
        self._watch = DaemonWatch(self._client, self._reader, settings)
        self._pods = Pods(self._client, self._state, self._reader, settings)
        self._calls = PendingCalls()
        self._sessions = ExecProcesses(self._client)
        self._watch_task: asyncio.Task[None] | None = None
        self._lock = FolderLock(settings.root)
        self._starting: set[str] = set()

    async def __aenter__(self) -> Self:
        self._lock.acquire()
        try:
            self._client.open()
            await self._initial_relist()
        except BaseException:
            await self._close()
            raise
        self._watch_task = spawn(self._watch.run(), name="containerd watch", on_failure=_report)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._close()

    async def version(self) -> str:
        return str((await self._client.call("Version")).runtime_version)

    # Sandboxes

    async def run_sandbox(self, config: SandboxConfig) -> str:
        return await self._calls.run(self._pods.run_sandbox(config), f"run {config.namespace}/{config.name}")

    async def stop_sandbox(self, sandbox_id: str) -> None:
        self._pods.close(sandbox_id)
        await self._calls.wait_for(sandbox_id, *self._state.containers_in(sandbox_id))
        await self._calls.run(self._pods.stop_sandbox(sandbox_id), f"stop sandbox {sandbox_id}")

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        await self._calls.run(self._pods.remove_sandbox(sandbox_id), f"remove sandbox {sandbox_id}")

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        return await self._reader.sandbox(sandbox_id)

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        return await self._reader.sandboxes(pod_uid)

    # Containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        call = self._pods.create(sandbox_id, config)
        return await self._calls.run(call, f"create {config.name}", within=sandbox_id)

    async def start_container(self, container_id: str) -> None:
        if container_id in self._starting:
            raise ConflictInRuntimeError(f"container {container_id} was started before")
        self._starting.add(container_id)
        await self._calls.run(self._start(container_id), f"start {container_id}", within=container_id)

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        # Wait for a pending start: a container that starts after its stop returned would never be stopped.
        await self._calls.wait_for(container_id)
        await self._reader.raw_status(container_id)
        await self._calls.run(self._pods.stop(container_id, grace_seconds), f"stop {container_id}")

    async def remove_container(self, container_id: str) -> None:
        await self._calls.wait_for(container_id)
        await self._calls.run(self._pods.remove(container_id), f"remove {container_id}")

    async def update_container_resources(self, container_id: str, resources: Resources) -> None:
        call = self._pods.update(container_id, resources)
        await self._calls.run(call, f"resize {container_id}", within=container_id)

    async def container_status(self, container_id: str) -> ContainerStatus:
        return await self._reader.container(container_id)

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        return await self._reader.containers(pod_uid, sandbox_id)

    @asynccontextmanager
    async def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AsyncIterator[ExecSession]:
        status = await self._reader.container(container_id)
        with self._sessions.track(container_id) as tracked:
            async with executing(self._client, status, command, stdin=stdin, tty=tty) as session:
                try:
                    yield session
                finally:
                    if not session.has_ended:
                        await self._sessions.kill_leftovers(tracked)

    @asynccontextmanager
    async def attach(self, container_id: str, *, stdin: bool) -> AsyncIterator[ExecSession]:
        status = await self._reader.container(container_id)
        async with attaching(self._client, status, stdin=stdin) as session:
            yield session

    @asynccontextmanager
    async def port_forward(self, sandbox_id: str, port: int) -> AsyncIterator[PodConnection]:
        async with connected_to_port(self._client, sandbox_id, port) as connection:
            yield connection

    async def exec_sync(
        self, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
    ) -> ExecResult:
        status = await self._reader.container(container_id)
        return await run_command(self._client, status, command, timeout_seconds)

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        return self._subscriptions.events()

    async def find_image(self, image: str) -> str | None:
        return await images.find_image(self._client, image)

    async def pull_image(self, image: str) -> str:
        return await images.pull_image(self._client, image)

    async def _initial_relist(self) -> None:
        """Record the existing containers without events, and delete the files of removed ones."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._reader.relist()
                kept = await self._reader.termination_files()
        except (RuntimeUnavailableError, TimeoutError) as error:
            log.warning("containerd unreachable, waiting: %s", error)
            return
        remove_others(self._settings.termination_folder, kept)

    async def _close(self) -> None:
        await self._calls.close()
        if self._watch_task is not None:
            await cancel_and_wait(self._watch_task)
        await self._client.close()
        self._lock.release()

    async def _start(self, container_id: str) -> None:
        try:
            await self._pods.start(container_id)
        finally:
            self._starting.discard(container_id)
            # Its events during the start were held back.
            self._watch.suspect(container_id)


def _report(failure: BaseException) -> Any:
    log.error("containerd watch ended: %s", failure, exc_info=failure)
