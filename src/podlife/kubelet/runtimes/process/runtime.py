"""Containers as plain processes: nothing to install, nothing to pull, the node's own files and network.

Each container is a session of processes under its own supervisor, which outlives the kubelet. All state is on disk
(`records.py`): the kubelet reads it at startup, and from then on the kernel notifies it when a supervisor exits;
nothing is polled. A sandbox is only a record: it runs no process and has the node's addresses.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from podlife import __version__
from podlife.clock import Clock
from podlife.errors import ConfigError
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    EventKind,
    ExecSession,
    InvalidContainerError,
    NotFoundInRuntimeError,
    PodConnection,
    Resources,
    RuntimeEvent,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
)
from podlife.kubelet.runtimes.commands import exec_sync
from podlife.kubelet.runtimes.preconditions import (
    FolderLock,
    check_exec,
    check_new_container,
    check_new_sandbox,
    check_ready,
    check_running,
    find,
    log_path_of,
    make_private,
    started_before,
)
from podlife.kubelet.runtimes.subscriptions import Subscriptions

from .cgroups import Cgroups, discover
from .execution import attaching, connected, connected_to_port, executing
from .exit_watcher import ExitWatcher
from .launch import LaunchContext, ProcessSettings, launch_of, make_default_termination_message_path
from .launcher import Launcher
from .records import ContainerRecord, Records, SandboxRecord, from_nanoseconds, remove

# Time beyond the grace period after which a stop fails: by then only the kernel can be the cause.
_KILL_SECONDS = 60.0
_RETRY_SECONDS = 0.01
# Attempts to reach a supervisor; it is briefly unreachable while it starts or exits.
_STOP_TRIES = 100


class ProcessRuntime:
    """The `process` runtime. Only one kubelet may use a folder; opening a folder in use raises ConfigError."""

    name = "process"
    image_is_name_only = True

    def __init__(self, settings: ProcessSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._records = Records(settings.root)
        self._launcher = Launcher(self._records.starting_lock)
        self._exits = ExitWatcher(self._records, clock, self._on_exit)
        self._subscriptions = Subscriptions()
        self._cgroups: Cgroups | None = None
        self._lock = FolderLock(settings.root)
        self._sandboxes: dict[str, SandboxRecord] = {}
        self._containers: dict[str, ContainerRecord] = {}

    async def __aenter__(self) -> Self:
        if sys.platform != "linux":
            raise ConfigError(f"the process runtime needs Linux, this is {sys.platform}: use the runtime sim")
        self._lock.acquire()
        try:
            await self._open()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._close()

    async def version(self) -> str:
        return __version__

    # Sandboxes

    async def run_sandbox(self, config: SandboxConfig) -> str:
        if config.sysctls:
            raise InvalidContainerError(
                f"pod {config.name!r} sets the sysctl {next(iter(config.sysctls))!r}: processes share the kernel "
                "parameters of their node; leave it out, or use a node with --runtime containerd"
            )
        others = (each for each in self._sandboxes.values() if each.config.pod_uid == config.pod_uid)
        check_new_sandbox(config, ((other.id, other.config) for other in others))
        record = SandboxRecord(secrets.token_hex(32), config, self._clock.now())
        with _reporting_write_errors(f"sandbox of pod {config.name!r}"):
            self._records.save_sandbox(record)
        self._sandboxes[record.id] = record
        self._publish(EventKind.SANDBOX_STARTED, record)
        return record.id

    async def stop_sandbox(self, sandbox_id: str) -> None:
        record = self._sandboxes.get(sandbox_id)
        if record is None:
            return
        if record.state is SandboxState.READY:
            # First, so that no more containers are created or started in it.
            record.state = SandboxState.NOT_READY
            with _reporting_write_errors(f"sandbox of pod {record.config.name!r}"):
                self._records.save_sandbox(record)
            self._publish(EventKind.SANDBOX_STOPPED, record)
        stops = [
            self.stop_container(container.id, grace_seconds=0) for container in self._in_sandbox(sandbox_id)
        ]
        for outcome in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, NotFoundInRuntimeError):
                raise outcome

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        for container in self._in_sandbox(sandbox_id):
            await self.remove_container(container.id)
        if (record := self._sandboxes.pop(sandbox_id, None)) is not None:
            self._records.remove_sandbox(sandbox_id)
            self._publish(EventKind.SANDBOX_REMOVED, record)

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        return self._sandbox_status(find("sandbox", self._sandboxes, sandbox_id))

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        return [
            self._sandbox_status(record)
            for record in self._sandboxes.values()
            if pod_uid is None or record.config.pod_uid == pod_uid
        ]

    # Containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = self._ready_sandbox(sandbox_id)
        check_new_container(config, ((other.id, other.config) for other in self._in_sandbox(sandbox_id)))
        container_id = secrets.token_hex(32)
        context = LaunchContext(
            container_id, self._records.container(container_id), log_path_of(sandbox.config, config)
        )
        launch = launch_of(sandbox.config, config, context, self._settings, self._cgroups)
        log_path = str(context.log_path) if context.log_path else None
        record = ContainerRecord(container_id, sandbox_id, config, self._clock.now(), log_path)
        with _reporting_write_errors(f"container {config.name!r}"):
            if context.log_path is not None:
                make_private(context.log_path.parent)
            self._records.save_container(record, launch)
        self._containers[container_id] = record
        self._publish(EventKind.CONTAINER_CREATED, sandbox, record)
        return container_id

    async def start_container(self, container_id: str) -> None:
        record = self._container(container_id)
        sandbox = self._ready_sandbox(record.sandbox_id)
        if record.state is not ContainerState.CREATED or record.is_starting:
            raise started_before(record.config.name)
        record.is_starting = True
        # The caller may be cancelled, but the launcher still starts the container, and its exit must be watched.
        await asyncio.shield(self._exits.spawn(self._start(sandbox, record), f"start {record.config.name}"))

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        record = self._container(container_id)
        give_up = asyncio.get_running_loop().time() + max(grace_seconds, 0.0) + _KILL_SECONDS
        try:
            async with asyncio.timeout_at(give_up):
                await self._request_stop(record, grace_seconds)
                await self._exits.wait_for(record)
        except TimeoutError:
            raise RuntimeUnavailableError(f"container {record.config.name!r} could not be stopped") from None

    async def remove_container(self, container_id: str) -> None:
        if container_id not in self._containers:
            return
        await self.stop_container(container_id, grace_seconds=0)
        record = self._containers.pop(container_id, None)
        if record is not None:
            with _reporting_write_errors(f"container {record.config.name!r}"):
                detached = self._records.detach_container(container_id)
            self._publish(EventKind.CONTAINER_REMOVED, self._sandboxes.get(record.sandbox_id), record)
            removal = asyncio.to_thread(remove, detached)
            await asyncio.shield(self._exits.spawn(removal, f"remove {record.config.name}"))

    async def update_container_resources(self, container_id: str, resources: Resources) -> None:
        record = self._container(container_id)
        name = record.config.name
        check_running(name, record.state)
        if self._cgroups is not None:
            try:
                await asyncio.to_thread(self._cgroups.set, container_id, record.config, resources)
            except OSError as failure:
                raise ContainerRuntimeError(
                    f"container {name!r} cannot be resized: {failure.strerror}"
                ) from failure
        with _reporting_write_errors(f"container {name!r}"):
            self._records.save_resources(container_id, resources)
        record.config = replace(record.config, resources=resources)

    async def container_status(self, container_id: str) -> ContainerStatus:
        return self._container_status(self._container(container_id))

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]:
        return [
            self._container_status(record)
            for record in self._containers.values()
            if (sandbox_id is None or record.sandbox_id == sandbox_id)
            and (pod_uid is None or self._pod_uid(record) == pod_uid)
        ]

    @asynccontextmanager
    async def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AsyncIterator[ExecSession]:
        record = self._container(container_id)
        check_exec(command, record.config.name, record.state)
        async with executing(self._records.container(container_id), command, stdin=stdin, tty=tty) as session:
            yield session

    exec_sync = exec_sync

    @asynccontextmanager
    async def attach(self, container_id: str, *, stdin: bool) -> AsyncIterator[ExecSession]:
        record = self._container(container_id)
        check_running(record.config.name, record.state)
        async with attaching(self._records.container(container_id), record.config, stdin=stdin) as session:
            yield session

    @asynccontextmanager
    async def port_forward(self, sandbox_id: str, port: int) -> AsyncIterator[PodConnection]:
        self._ready_sandbox(sandbox_id)
        async with connected_to_port(port) as connection:
            yield connection

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        return self._subscriptions.events()

    async def find_image(self, image: str) -> str | None:
        return image

    async def pull_image(self, image: str) -> str:
        return image

    # Internals

    async def _open(self) -> None:
        await self._launcher.wait_for_pending_starts()
        left = self._records.prepare()
        make_default_termination_message_path()
        self._cgroups = discover() if self._settings.use_cgroups else None
        # Watch before loading: an exit in between is reported twice rather than missed.
        self._exits.open()
        self._sandboxes = {record.id: record for record in self._records.load_sandboxes()}
        self._containers = {record.id: record for record in self._records.load_containers()}
        await self._exits.follow(self._containers)
        if left:
            self._exits.spawn(asyncio.to_thread(remove, *left), "remove leftovers of an earlier kubelet")

    async def _close(self) -> None:
        await self._exits.close()
        await self._launcher.close()
        self._lock.release()

    async def _start(self, sandbox: SandboxRecord, record: ContainerRecord) -> None:
        try:
            await self._launcher.start(
                record.config.name, self._records.container(record.id), self._records.lock(record.id)
            )
            self._publish(EventKind.CONTAINER_STARTED, sandbox, record)
        finally:
            record.is_starting = False
            # Exits are ignored while `is_starting` is set.
            self._exits.refresh(record)

    async def _request_stop(self, record: ContainerRecord, grace_seconds: float) -> None:
        """Waits for a pending start first: a container that starts after its stop would never be stopped."""
        tries = 0
        while self._is_state_pending(record) or not await self._send_stop(record, grace_seconds):
            tries += not self._is_state_pending(record)
            if tries == _STOP_TRIES:
                await self._exits.kill_unresponsive(record, grace_seconds)
                return
            await asyncio.sleep(_RETRY_SECONDS)

    def _is_state_pending(self, record: ContainerRecord) -> bool:
        """Whether the container may be running although its recorded state does not say so."""
        return record.is_starting or self._exits.is_unreadable(record)

    async def _send_stop(self, record: ContainerRecord, grace_seconds: float) -> bool:
        """Whether the supervisor has received the request, or need not."""
        if record.state is not ContainerState.RUNNING:
            return True
        try:
            async with connected(self._records.container(record.id)) as supervisor:
                supervisor.send({"verb": "stop", "grace_seconds": max(grace_seconds, 0.0)})
                return await supervisor.receive() is not None
        except OSError:
            # The supervisor is not listening yet, or has exited; the next attempt finds out which.
            return False

    def _on_exit(self, record: ContainerRecord | None) -> None:
        if record is None:
            self._publish(EventKind.RELIST)
        else:
            self._publish(EventKind.CONTAINER_STOPPED, self._sandboxes.get(record.sandbox_id), record)

    def _publish(
        self, kind: EventKind, sandbox: SandboxRecord | None = None, container: ContainerRecord | None = None
    ) -> None:
        pod_uid, sandbox_id = (sandbox.config.pod_uid, sandbox.id) if sandbox else ("", "")
        container_id = container.id if container else ""
        self._subscriptions.publish(RuntimeEvent(kind, pod_uid, sandbox_id, container_id))

    def _ready_sandbox(self, sandbox_id: str) -> SandboxRecord:
        record = find("sandbox", self._sandboxes, sandbox_id)
        check_ready(sandbox_id, record.state)
        return record

    def _container(self, container_id: str) -> ContainerRecord:
        return find("container", self._containers, container_id)

    def _in_sandbox(self, sandbox_id: str) -> list[ContainerRecord]:
        return [record for record in self._containers.values() if record.sandbox_id == sandbox_id]

    def _pod_uid(self, record: ContainerRecord) -> str:
        sandbox = self._sandboxes.get(record.sandbox_id)
        return sandbox.config.pod_uid if sandbox else ""

    def _sandbox_status(self, record: SandboxRecord) -> SandboxStatus:
        ips = self._settings.ips if record.state is SandboxState.READY else ()
        return SandboxStatus(record.id, record.config, record.state, record.created_at, ips)

    def _container_status(self, record: ContainerRecord) -> ContainerStatus:
        ended = record.exit
        return ContainerStatus(
            id=record.id,
            sandbox_id=record.sandbox_id,
            pod_uid=self._pod_uid(record),
            config=record.config,
            state=record.state,
            created_at=record.created_at,
            started_at=record.started_at,
            finished_at=from_nanoseconds(ended.finished_at_ns) if ended else None,
            exit_code=ended.exit_code if ended else None,
            reason=ended.reason if ended else "",
            message=ended.message if ended else "",
            termination_message=ended.termination_message if ended else "",
            image_ref=record.config.image,
            log_path=Path(record.log_path) if record.log_path else None,
        )


@contextmanager
def _reporting_write_errors(what: str) -> Iterator[None]:
    """Report a failed write as an error that the pod's status shows."""
    try:
        yield
    except OSError as failure:
        raise RuntimeUnavailableError(f"{what} cannot be written to disk: {failure.strerror}") from failure
