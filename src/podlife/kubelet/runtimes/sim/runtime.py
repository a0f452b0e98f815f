"""The runtime's verbs over a `SimWorld`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Self

from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    EventKind,
    ExecResult,
    ExecSession,
    ImagePullError,
    InvalidContainerError,
    Resources,
    RuntimeEvent,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
    StartContainerError,
)
from podlife.kubelet.runtimes.commands import ResultSession, exec_sync
from podlife.kubelet.runtimes.preconditions import (
    check_exec,
    check_new_container,
    check_new_sandbox,
    check_ready,
    check_running,
    find,
    log_path_of,
    started_before,
)

from .world import SimContainer, SimSandbox, SimWorld


class SimRuntime:
    """The `sim` runtime. A second one over the same world simulates a restarted kubelet."""

    name = "sim"

    def __init__(self, world: SimWorld) -> None:
        self._world = world

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        """The world keeps running."""

    async def version(self) -> str:
        return "1"

    async def run_sandbox(self, config: SandboxConfig) -> str:
        world = self._world
        check_new_sandbox(config, ((other.id, other.config) for other in world.sandboxes_of(config.pod_uid)))
        sandbox = SimSandbox(world.new_id(), config, world.clock.now())
        world.add_sandbox(sandbox)
        world.publish(EventKind.SANDBOX_STARTED, sandbox)
        return sandbox.id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        sandbox = self._world.sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        if sandbox.state is SandboxState.READY:
            sandbox.state = SandboxState.NOT_READY
            self._world.publish(EventKind.SANDBOX_STOPPED, sandbox)
        for container in list(sandbox.containers.values()):
            await self.stop_container(container.id, grace_seconds=0)

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        sandbox = self._world.sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        for container in list(sandbox.containers.values()):
            await self.remove_container(container.id)
        self._world.remove_sandbox(sandbox)
        self._world.publish(EventKind.SANDBOX_REMOVED, sandbox)

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        return self._world.sandbox_status(find("sandbox", self._world.sandboxes, sandbox_id))

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        world = self._world
        wanted = world.sandboxes.values() if pod_uid is None else world.sandboxes_of(pod_uid)
        return [world.sandbox_status(sandbox) for sandbox in wanted]

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox, world = self._ready_sandbox(sandbox_id), self._world
        check_new_container(config, ((other.id, other.config) for other in sandbox.containers.values()))
        behaviour = world.script(sandbox.config, config)
        if behaviour.refusal:
            raise InvalidContainerError(behaviour.refusal)
        container = SimContainer(world.new_id(), sandbox, config, behaviour, world.clock.now())
        container.log_path = log_path_of(sandbox.config, config)
        sandbox.containers[container.id] = world.containers[container.id] = container
        world.publish(EventKind.CONTAINER_CREATED, sandbox, container)
        return container.id

    async def start_container(self, container_id: str) -> None:
        container = self._container(container_id)
        self._ready_sandbox(container.sandbox.id)
        if container.state is not ContainerState.CREATED or container.is_starting:
            raise started_before(container.config.name)
        behaviour = container.behaviour
        container.is_starting = True
        started = asyncio.get_running_loop().create_future()
        container.starters.append(started)
        self._world.begin(container)
        await started
        if container.reason == "StartError":
            raise StartContainerError(
                f"cannot start container {container.config.name!r}: {behaviour.start_error}"
            )

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        container = self._container(container_id)
        if container.is_starting:
            await self._wait_in(container.starters)
        self._world.ask_to_stop(container, grace_seconds)
        if container.state is ContainerState.RUNNING:
            await self._wait_in(container.waiters)

    async def remove_container(self, container_id: str) -> None:
        if container_id not in self._world.containers:
            return
        await self.stop_container(container_id, grace_seconds=0)
        container = self._world.containers.pop(container_id, None)
        if container is not None:
            del container.sandbox.containers[container_id]
            self._world.publish(EventKind.CONTAINER_REMOVED, container.sandbox, container)

    async def update_container_resources(self, container_id: str, resources: Resources) -> None:
        container = self._container(container_id)
        check_running(container.config.name, container.state)
        if self._world.resize_error:
            raise ContainerRuntimeError(self._world.resize_error)
        container.config = replace(container.config, resources=resources)

    async def container_status(self, container_id: str) -> ContainerStatus:
        return self._world.container_status(self._container(container_id))

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        world = self._world
        wanted = world.sandboxes.values() if pod_uid is None else world.sandboxes_of(pod_uid)
        return [
            world.container_status(container)
            for sandbox in wanted
            if sandbox_id is None or sandbox.id == sandbox_id
            for container in sandbox.containers.values()
        ]

    @asynccontextmanager
    async def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AsyncIterator[ExecSession]:
        container = self._container(container_id)
        check_exec(command, container.config.name, container.state)
        respond = container.behaviour.exec
        session = ResultSession(tty=tty)
        session.end(respond(command) if respond else ExecResult(0, b"", b""))
        yield session

    exec_sync = exec_sync

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        return self._world.subscriptions.events()

    async def find_image(self, image: str) -> str | None:
        return image if self._world.missing_image(image) is None else None

    async def pull_image(self, image: str) -> str:
        missing = self._world.missing_image(image)
        if missing is not None:
            seconds, error = missing
            await asyncio.sleep(seconds)
            if error:
                raise ImagePullError(error)
            self._world.pulled.add(image)
        return image

    async def _wait_in(self, waiters: list[asyncio.Future[None]]) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in waiters:
                waiters.remove(waiter)

    def _ready_sandbox(self, sandbox_id: str) -> SimSandbox:
        sandbox = find("sandbox", self._world.sandboxes, sandbox_id)
        check_ready(sandbox_id, sandbox.state)
        return sandbox

    def _container(self, container_id: str) -> SimContainer:
        return find("container", self._world.containers, container_id)
