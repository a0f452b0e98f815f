"""Containers with containerd, over CRI v1.

All state is in the daemon: this side keeps only what it saw last. What was asked for goes on when whoever asked stops
waiting. While the daemon is away every call raises `RuntimeUnavailableError`, containers run on, and once it is back
their exit codes are there. Only what carries this kubelet's label is seen or touched.
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
    RuntimeEvent,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxStatus,
)
from podlife.kubelet.runtimes.preconditions import FolderLock
from podlife.kubelet.runtimes.subscriptions import Subscriptions

from . import images
from .client import ContainerdSettings, CriClient
from .execution import ExecProcesses, executing, run_command
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

    async def give(self, order: Coroutine[Any, Any, T], name: str, *, within: str = "") -> T:
        """Answer what comes of it. `within` is the sandbox, or the container, that has to wait for it."""
        task = spawn(
            order, name=f"containerd order: {name}", on_failure=lambda error: log.debug("%s: %s", name, error)
        )
        self._tasks[task] = within
        task.add_done_callback(self._tasks.pop)
        return await asyncio.shield(task)

    async def wait_for(self, *within: str) -> None:
        """Until nothing is on its way there; every order has a deadline of its own."""
        while waiting := [task for task, where in self._tasks.items() if where in within]:
            await asyncio.wait(waiting)

    async def close(self) -> None:
        """Give what is on its way a little time, then no more."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        await cancel_and_wait(*self._tasks)


class ContainerdRuntime:
    """The runtime `containerd`. One kubelet at a time per folder; opening it while another one has it raises
    ConfigError, as it does where grpc is not installed. A daemon that does not answer is no reason not to open it."""

    name = "containerd"
    network_is_own = True

    def __init__(self, settings: ContainerdSettings) -> None:
        self._settings = settings
        self._client = CriClient(settings.socket)
        self._subscriptions = Subscriptions()
        self._mirror = StateDiff(self._subscriptions.publish)
        self._reading = StateReader(self._client, self._mirror, settings)
        self._watch = DaemonWatch(self._client, self._reading, settings)
        self._pods = Pods(self._client, self._mirror, self._reading, settings)
        self._orders = PendingCalls()
        self._sessions = ExecProcesses(self._client)
        self._watching: asyncio.Task[None] | None = None
        self._lock = FolderLock(settings.root)
        self._starting: set[str] = set()

    async def __aenter__(self) -> Self:
        self._lock.acquire()
        try:
            self._client.open()
            await self._look_first()
        except BaseException:
            await self._close()
            raise
        self._watching = spawn(self._watch.run(), name="containerd watch", on_failure=_report)
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._close()

    async def version(self) -> str:
        return str((await self._client.call("Version")).runtime_version)

    # Sandboxes

    async def run_sandbox(self, config: SandboxConfig) -> str:
        return await self._orders.give(
            self._pods.run_sandbox(config), f"run {config.namespace}/{config.name}"
        )

    async def stop_sandbox(self, sandbox_id: str) -> None:
        self._pods.close(sandbox_id)
        await self._orders.wait_for(sandbox_id, *self._mirror.containers_in(sandbox_id))
        await self._orders.give(self._pods.stop_sandbox(sandbox_id), f"stop sandbox {sandbox_id}")

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        await self._orders.give(self._pods.remove_sandbox(sandbox_id), f"remove sandbox {sandbox_id}")

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        return await self._reading.sandbox(sandbox_id)

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        return await self._reading.sandboxes(pod_uid)

    # Containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        order = self._pods.create(sandbox_id, config)
        return await self._orders.give(order, f"create {config.name}", within=sandbox_id)

    async def start_container(self, container_id: str) -> None:
        if container_id in self._starting:
            raise ConflictInRuntimeError(f"container {container_id} was started before")
        self._starting.add(container_id)
        await self._orders.give(self._start(container_id), f"start {container_id}", within=container_id)

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        # A start on its way is waited for: what runs after a stop has returned would run for ever.
        await self._orders.wait_for(container_id)
        await self._reading.told_of(container_id)
        await self._orders.give(self._pods.stop(container_id, grace_seconds), f"stop {container_id}")

    async def remove_container(self, container_id: str) -> None:
        await self._orders.wait_for(container_id)
        await self._orders.give(self._pods.remove(container_id), f"remove {container_id}")

    async def container_status(self, container_id: str) -> ContainerStatus:
        return await self._reading.container(container_id)

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        return await self._reading.containers(pod_uid, sandbox_id)

    @asynccontextmanager
    async def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AsyncIterator[ExecSession]:
        status = await self._reading.container(container_id)
        with self._sessions.begun(container_id) as begun:
            async with executing(self._client, status, command, stdin=stdin, tty=tty) as session:
                try:
                    yield session
                finally:
                    if not session.has_ended:
                        await self._sessions.end_leftovers(begun)

    async def exec_sync(
        self, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
    ) -> ExecResult:
        status = await self._reading.container(container_id)
        return await run_command(self._client, status, command, timeout_seconds)

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        return self._subscriptions.events()

    async def find_image(self, image: str) -> str | None:
        return await images.find_image(self._client, image)

    async def pull_image(self, image: str) -> str:
        return await images.pull_image(self._client, image)

    # Inside

    async def _look_first(self) -> None:
        """What is there already is not told as new; and the files of what is gone are not kept."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                await self._reading.relist()
                kept = await self._reading.termination_files()
        except (RuntimeUnavailableError, TimeoutError) as error:
            log.warning("containerd unreachable, waiting: %s", error)
            return
        remove_others(self._settings.termination_folder, kept)

    async def _close(self) -> None:
        await self._orders.close()
        if self._watching is not None:
            await cancel_and_wait(self._watching)
        await self._client.close()
        self._lock.release()

    async def _start(self, container_id: str) -> None:
        try:
            await self._pods.start(container_id)
        finally:
            self._starting.discard(container_id)
            # What happened to it meanwhile was held back.
            self._watch.suspect(container_id)


def _report(failure: BaseException) -> Any:
    log.error("containerd watch ended: %s", failure, exc_info=failure)
