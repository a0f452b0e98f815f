"""The runtime's verbs over a `Compute`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from podlife.aio import cancel_and_wait, spawn
from podlife.clock import Clock
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    EventKind,
    ExecSession,
    Resources,
    RuntimeEvent,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.kubelet.runtimes.commands import ResultSession, exec_sync
from podlife.kubelet.runtimes.custom.compute import Compute
from podlife.kubelet.runtimes.custom.driver import Driver
from podlife.kubelet.runtimes.custom.records import (
    Container,
    Records,
    Sandbox,
    StoredContainer,
    StoredSandbox,
)
from podlife.kubelet.runtimes.preconditions import (
    FolderLock,
    check_exec,
    check_new_container,
    check_new_sandbox,
    check_ready,
    check_running,
    find,
    log_path_of,
    started_before,
)


class CustomRuntime:
    """Stores its sandboxes and containers in `folder`, which only one kubelet may use. `ips` are the addresses of every
    pod, for probes and hooks."""

    image_is_name_only = True

    def __init__(
        self,
        compute: Compute,
        folder: Path,
        clock: Clock,
        *,
        name: str = "own",
        ips: tuple[str, ...] = ("127.0.0.1",),
    ) -> None:
        self.name = name
        self._compute = compute
        self._clock = clock
        self._ips = ips
        self._lock = FolderLock(folder, f"another agent uses {folder}: stop it, or name another folder")
        self._records = Records(folder)
        self._driver = Driver(compute, self._records, clock)

    async def __aenter__(self) -> Self:
        self._lock.acquire()
        try:
            self._records.load()
            await self._driver.open()
        except BaseException:
            self._lock.release()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        try:
            await self._driver.close()
        finally:
            self._lock.release()

    async def version(self) -> str:
        await self._driver.call(self._compute.runs())
        return "1"

    async def run_sandbox(self, config: SandboxConfig) -> str:
        others = (other.stored for other in self._records.of_pod(config.pod_uid))
        check_new_sandbox(config, ((other.id, other.config) for other in others))
        sandbox = self._records.add_sandbox(StoredSandbox(secrets.token_hex(32), config, self._clock.now()))
        self._driver.publish(EventKind.SANDBOX_STARTED, sandbox)
        return sandbox.stored.id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._records.sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        if sandbox.stored.state is SandboxState.READY:
            sandbox.stored.state = SandboxState.NOT_READY
            self._records.save(sandbox.stored)
            self._driver.publish(EventKind.SANDBOX_STOPPED, sandbox)
        stops = [self._stop(each, 0.0) for each in sandbox.containers.values()]
        for failure in await asyncio.gather(*stops, return_exceptions=True):
            if failure is not None:
                raise failure

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        sandbox = self._records.sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        for container_id in list(sandbox.containers):
            await self.remove_container(container_id)
        if self._records.sandboxes.get(sandbox_id) is sandbox:
            self._records.remove_sandbox(sandbox)
            self._driver.publish(EventKind.SANDBOX_REMOVED, sandbox)

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        return find("sandbox", self._records.sandboxes, sandbox_id).status(self._ips)

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        return [sandbox.status(self._ips) for sandbox in self._sandboxes(pod_uid)]

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = self._ready_sandbox(sandbox_id)
        others = sandbox.containers.values()
        check_new_container(config, ((other.id, other.stored.config) for other in others))
        log_path = log_path_of(sandbox.stored.config, config)
        stored = StoredContainer(secrets.token_hex(32), sandbox_id, config, self._clock.now(), log_path)
        container = self._records.add_container(stored, sandbox)
        self._driver.publish(EventKind.CONTAINER_CREATED, sandbox, container.id)
        return container.id

    async def start_container(self, container_id: str) -> None:
        container = self._container(container_id)
        self._ready_sandbox(container.stored.sandbox_id)
        if container.stored.is_claimed:
            raise started_before(container.stored.config.name)
        if container.is_being_removed:
            raise ConflictInRuntimeError(f"container {container.stored.config.name!r} is being removed")
        await asyncio.shield(self._driver.begin(container))

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        await self._stop(self._container(container_id), grace_seconds)

    async def remove_container(self, container_id: str) -> None:
        container = self._records.containers.get(container_id)
        if container is None:
            return
        container.is_being_removed = True
        await self._stop(container, 0.0)
        if container.stored.is_claimed:
            await self._driver.call(self._compute.remove(container_id))
        if container_id in self._records.containers:
            self._records.remove_container(container)
            self._driver.publish(EventKind.CONTAINER_REMOVED, container.sandbox, container_id)

    async def update_container_resources(self, container_id: str, resources: Resources) -> None:
        """Recorded only: a `Compute` enforces no limits."""
        container = self._container(container_id)
        check_running(container.stored.config.name, container.state)
        container.stored.config = replace(container.stored.config, resources=resources)
        self._records.save(container.stored)

    async def container_status(self, container_id: str) -> ContainerStatus:
        return self._container(container_id).status()

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        return [
            container.status()
            for sandbox in self._sandboxes(pod_uid)
            if sandbox_id is None or sandbox.stored.id == sandbox_id
            for container in sandbox.containers.values()
        ]

    @asynccontextmanager
    async def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AsyncIterator[ExecSession]:
        container = self._container(container_id)
        check_exec(command, container.stored.config.name, container.state)
        session = ResultSession(tty=tty)
        work = session.run(lambda: self._compute.exec(container_id, command))
        running = spawn(work, name="exec", on_failure=lambda _: None)
        try:
            yield session
        finally:
            await cancel_and_wait(running)

    exec_sync = exec_sync

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        return self._driver.subscriptions.events()

    async def find_image(self, image: str) -> str | None:
        return image

    async def pull_image(self, image: str) -> str:
        return image

    async def _stop(self, container: Container, grace_seconds: float) -> None:
        if container.starting is not None:
            # The result is for the caller of the start.
            with suppress(ContainerRuntimeError):
                await asyncio.shield(container.starting)
        if container.state is ContainerState.RUNNING:
            await asyncio.shield(self._driver.ask_to_stop(container, grace_seconds))

    def _sandboxes(self, pod_uid: str | None) -> list[Sandbox]:
        return list(self._records.sandboxes.values()) if pod_uid is None else self._records.of_pod(pod_uid)

    def _ready_sandbox(self, sandbox_id: str) -> Sandbox:
        sandbox = find("sandbox", self._records.sandboxes, sandbox_id)
        check_ready(sandbox_id, sandbox.stored.state)
        return sandbox

    def _container(self, container_id: str) -> Container:
        return find("container", self._records.containers, container_id)
