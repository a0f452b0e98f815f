"""Containers with containerd, over CRI v1.

All state is in the daemon: this side keeps only what it saw last. What was asked for goes on when whoever asked stops
waiting. While the daemon is away every call raises `RuntimeUnavailableError`, containers run on, and once it is back
their exit codes are there. Only what carries this agent's label is seen or touched.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import math
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from podlife.aio import cancel_and_wait, spawn
from podlife.errors import ConfigError
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    ExecResult,
    ExecSession,
    NotFoundInRuntimeError,
    RuntimeEvent,
    RuntimeUnavailableError,
    SandboxConfig,
    SandboxState,
    SandboxStatus,
    StartContainerError,
)
from podlife.kubelet.runtimes.logs import log_path_of
from podlife.kubelet.runtimes.subscriptions import Subscriptions

from . import images
from .client import CALL_SECONDS, CriClient
from .commands import executing, run_command
from .leftovers import Sessions
from .mirror import Mirror, SeenContainer, SeenSandbox
from .orders import Orders
from .reading import Reading
from .requests import ContainerNote, container_request, sandbox_request
from .settings import ContainerdSettings
from .statuses import termination_file
from .termination import make_file, remove_others
from .watch import Watch

__all__ = ["ContainerdRuntime"]

log = logging.getLogger(__name__)

# A sandbox may have to wait for its network.
_SANDBOX_SECONDS = 2 * CALL_SECONDS
# How much longer than its grace a container may take: the kernel, not the container, is at work then.
_KILL_SECONDS = 60.0
# Three years; more than that no clock of the daemon's takes.
_MOST_GRACE_SECONDS = 10**8
_OPEN_SECONDS = 5.0
_REMOVAL_TRIES, _REMOVAL_SECONDS = 100, 0.05
_PASSING_STATES = ("removing state", "starting state")


class ContainerdRuntime:
    """The runtime `containerd`. One agent at a time per folder; opening it while another one has it raises ConfigError,
    as it does where grpc is not installed. A daemon that does not answer is no reason not to open it."""

    name = "containerd"

    def __init__(self, settings: ContainerdSettings) -> None:
        self._settings = settings
        self._client = CriClient(settings.socket)
        self._subscriptions = Subscriptions()
        self._mirror = Mirror(self._subscriptions.publish)
        self._reading = Reading(self._client, self._mirror, settings)
        self._watch = Watch(self._client, self._reading, settings)
        self._orders = Orders()
        self._sessions = Sessions(self._client)
        self._watching: asyncio.Task[None] | None = None
        self._agent_lock = -1
        self._starting: set[str] = set()
        self._stopping: set[str] = set()

    async def __aenter__(self) -> Self:
        self._settings.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._agent_lock = _lock_for_one(self._settings.root / "agent.lock")
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
        return await self._orders.give(self._run_sandbox(config), f"run {config.namespace}/{config.name}")

    async def stop_sandbox(self, sandbox_id: str) -> None:
        if self._mirror.has_sandbox(sandbox_id):
            # First, so that nothing is created or started in it any more.
            self._stopping.add(sandbox_id)
        await self._orders.wait_for(sandbox_id, *self._mirror.containers_in(sandbox_id))
        await self._orders.give(self._stop_sandbox(sandbox_id), f"stop sandbox {sandbox_id}")

    async def remove_sandbox(self, sandbox_id: str) -> None:
        await self.stop_sandbox(sandbox_id)
        await self._orders.give(self._remove_sandbox(sandbox_id), f"remove sandbox {sandbox_id}")

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus:
        return await self._reading.sandbox(sandbox_id)

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]:
        return await self._reading.sandboxes(pod_uid)

    # Containers

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        order = self._create(sandbox_id, config)
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
        await self._orders.give(self._stop(container_id, grace_seconds), f"stop {container_id}")

    async def remove_container(self, container_id: str) -> None:
        await self._orders.wait_for(container_id)
        await self._orders.give(self._remove(container_id), f"remove {container_id}")

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
            log.warning("containerd does not answer yet: %s", error)
            return
        remove_others(self._messages, kept)

    async def _close(self) -> None:
        await self._orders.close()
        if self._watching is not None:
            await cancel_and_wait(self._watching)
        await self._client.close()
        if self._agent_lock >= 0:
            os.close(self._agent_lock)
            self._agent_lock = -1

    @property
    def _messages(self) -> Path:
        return self._settings.root / "termination"

    async def _run_sandbox(self, config: SandboxConfig) -> str:
        if config.log_directory is not None:
            _make_private(Path(config.log_directory))
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

    async def _stop_sandbox(self, sandbox_id: str) -> None:
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

    async def _remove_sandbox(self, sandbox_id: str) -> None:
        if not await self._reading.is_our_sandbox(sandbox_id):
            return
        for status in await self._reading.containers(sandbox_id=sandbox_id):
            await self._remove(status.id)
        try:
            await self._client.call("RemovePodSandbox", pod_sandbox_id=sandbox_id, seconds=_SANDBOX_SECONDS)
        except NotFoundInRuntimeError:
            log.debug("sandbox %s was gone already", sandbox_id)
        self._reading.forget_sandbox(sandbox_id)
        self._stopping.discard(sandbox_id)

    async def _create(self, sandbox_id: str, config: ContainerConfig) -> str:
        sandbox = await self._ready_sandbox(sandbox_id)
        log_path = log_path_of(sandbox.config, config)
        note = ContainerNote(config, sandbox_id, sandbox.config.pod_uid, str(log_path) if log_path else None)
        # Looked at before a file is made for it: what cannot be asked for leaves nothing behind.
        container_request(sandbox.config, note, self._settings)
        if log_path is not None:
            _make_private(log_path.parent)
        note = self._with_termination_file(note)
        try:
            answer = await self._client.call(
                "CreateContainer",
                pod_sandbox_id=sandbox_id,
                config=container_request(sandbox.config, note, self._settings),
                sandbox_config=sandbox_request(sandbox.config, self._settings),
            )
        except ContainerRuntimeError as error:
            if not isinstance(error, RuntimeUnavailableError):
                _remove_file(note.termination_file)
            raise _create_failure(config, error) from None
        container_id = str(answer.container_id)
        seen = SeenContainer(container_id, sandbox_id, sandbox.config.pod_uid, ContainerState.CREATED)
        self._mirror.saw_container(seen)
        return container_id

    def _with_termination_file(self, note: ContainerNote) -> ContainerNote:
        if not note.config.termination_message_path:
            return note
        path = str(make_file(self._messages).absolute())
        return ContainerNote(note.config, note.sandbox_id, note.pod_uid, note.log_path, path)

    async def _start(self, container_id: str) -> None:
        try:
            status = await self._reading.container(container_id)
            await self._ready_sandbox(status.sandbox_id)
            if status.state is not ContainerState.CREATED:
                raise ConflictInRuntimeError(f"container {status.config.name!r} was started before")
            await self._start_once(status)
        finally:
            self._starting.discard(container_id)

    async def _start_once(self, status: ContainerStatus) -> None:
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
            # What happened to it meanwhile was held back.
            self._watch.suspect(status.id)

    async def _stop(self, container_id: str, grace_seconds: float) -> None:
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

    async def _remove(self, container_id: str) -> None:
        try:
            told = await self._reading.told_of(container_id)
        except NotFoundInRuntimeError:
            return
        await self._reading.look_at(container_id)
        await self._remove_from_daemon(container_id)
        self._reading.forget_container(container_id)
        _remove_file(termination_file(told))

    async def _remove_from_daemon(self, container_id: str) -> None:
        for _ in range(_REMOVAL_TRIES):
            try:
                await self._client.call("RemoveContainer", container_id=container_id)
            except NotFoundInRuntimeError:
                return
            except RuntimeUnavailableError:
                raise
            except ContainerRuntimeError as error:
                # Somebody else removes it, or an agent before us had it started: that passes, here or there.
                if not any(state in str(error) for state in _PASSING_STATES):
                    raise
                await asyncio.sleep(_REMOVAL_SECONDS)
            else:
                return
        raise RuntimeUnavailableError(f"container {container_id} is not removed")

    async def _ready_sandbox(self, sandbox_id: str) -> SandboxStatus:
        status = await self._reading.sandbox(sandbox_id)
        if status.state is not SandboxState.READY or sandbox_id in self._stopping:
            raise ConflictInRuntimeError(
                f"sandbox {sandbox_id} is stopped: nothing is started in it any more"
            )
        return status


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


def _make_private(folder: Path) -> None:
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        path.mkdir(mode=0o700, exist_ok=True)


def _lock_for_one(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ConfigError(
            f"{path.parent} is in use by another node agent: give each a folder of its own"
        ) from None
    return fd


def _report(failure: BaseException) -> Any:
    log.error("containerd is not watched any more: %s", failure, exc_info=failure)
