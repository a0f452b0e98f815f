"""The seam between the kubelet and what runs its containers.

The verbs are about those of CRI: sandboxes are run, stopped and removed; containers are created, started, stopped and
removed; both can be looked at and listed; a command can be run inside; events tell what changed. Every runtime passes
`tests/conformance/runtime`.

Guaranteed by every runtime: what it runs outlives the kubelet, and so does every exit code, until it is removed. Stop
and remove may be repeated. A container is started at most once. `stop_container` returns when nothing of it runs any
more. Left to the kubelet: restart policy, hooks, probes, backoff, when logs are deleted, what a volume holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from podlife.errors import PodlifeError


class ContainerRuntimeError(PodlifeError):
    """A runtime could not do what it was asked."""


class RuntimeUnavailableError(ContainerRuntimeError):
    """The runtime does not answer, or not in time: what was asked may have happened. Look, then ask again."""


class NotFoundInRuntimeError(ContainerRuntimeError):
    """There is no such sandbox or container. Where something was to end, it has."""


class ConflictInRuntimeError(ContainerRuntimeError):
    """The name is taken, or the state does not allow what was asked: a container is started only once."""


class InvalidContainerError(ContainerRuntimeError):
    """The runtime cannot run a container like this one, now or later; the text says what to change."""


class StartContainerError(ContainerRuntimeError):
    """The container could not be started. It has exited, with a code and a reason, and is not started again."""


class ExecError(ContainerRuntimeError):
    """The command could not be started in the container."""


class ExecTimeoutError(ExecError):
    """The command ran for too long and was ended."""


class ImagePullError(ContainerRuntimeError):
    """The image could not be had. `reason` is the one a waiting container shows, like `ErrImagePull`."""

    def __init__(self, message: str, *, reason: str = "ErrImagePull") -> None:
        super().__init__(message)
        self.reason = reason


class SandboxState(StrEnum):
    READY = "Ready"
    NOT_READY = "NotReady"


class ContainerState(StrEnum):
    CREATED = "Created"
    RUNNING = "Running"
    EXITED = "Exited"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the node, shown inside the container."""

    container_path: str
    host_path: str
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Resources:
    """Bounds of a container; None is no bound."""

    cpu_request_millis: int | None = None
    cpu_limit_millis: int | None = None
    memory_limit_bytes: int | None = None
    pids_limit: int | None = None


@dataclass(frozen=True, slots=True)
class User:
    """Whom a container runs as."""

    uid: int
    gid: int | None = None
    supplemental_groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """One attempt at a pod. `log_directory` is where its containers' logs go; without it nothing is logged."""

    pod_uid: str
    namespace: str
    name: str
    attempt: int = 0
    hostname: str = ""
    log_directory: str | None = None
    host_network: bool = False
    sysctls: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """One attempt at a container of a pod. `log_path` is relative to the sandbox's folder of logs.

    References in command, arguments and environment are expanded already. What the process writes to the file at
    `termination_message_path` is its termination message.
    """

    name: str
    image: str = ""
    attempt: int = 0
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    working_dir: str = ""
    log_path: str = ""
    tty: bool = False
    user: User | None = None
    allow_privilege_escalation: bool = True
    mounts: tuple[Mount, ...] = ()
    resources: Resources = Resources()
    stop_signal: str = "SIGTERM"
    termination_message_path: str = "/dev/termination-log"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    id: str
    config: SandboxConfig
    state: SandboxState
    created_at: datetime
    ips: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        return self.state is SandboxState.READY


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """A container as the runtime knows it. `reason` and `message` are of its end, as in a terminated container's state:
    `Completed`, `Error`, `OOMKilled`, `StartError`, or `ContainerStatusUnknown` where how it ended cannot be known."""

    id: str
    sandbox_id: str
    pod_uid: str
    config: ContainerConfig
    state: ContainerState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    termination_message: str = ""
    image_ref: str = ""
    log_path: Path | None = None

    @property
    def is_running(self) -> bool:
        return self.state is ContainerState.RUNNING

    @property
    def could_run(self) -> bool:
        """It runs, or its state is unknown, so that nobody can say that it does not."""
        return self.state in (ContainerState.RUNNING, ContainerState.UNKNOWN)


class EventKind(StrEnum):
    SANDBOX_STARTED = "SandboxStarted"
    SANDBOX_STOPPED = "SandboxStopped"
    SANDBOX_REMOVED = "SandboxRemoved"
    CONTAINER_CREATED = "ContainerCreated"
    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_STOPPED = "ContainerStopped"
    CONTAINER_REMOVED = "ContainerRemoved"
    # Events were lost; only a listing tells what there is now.
    RELIST = "Relist"


@dataclass(frozen=True, slots=True)
class RuntimeEvent:
    """Something changed. The event names it; what it is now the status tells."""

    kind: EventKind
    pod_uid: str = ""
    sandbox_id: str = ""
    container_id: str = ""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. Output beyond the bound asked for is left away."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class ExecSession(Protocol):
    """A command that runs in a container. With a terminal everything it writes comes through `stdout`."""

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    async def write_stdin(self, data: bytes) -> None: ...

    async def close_stdin(self) -> None: ...

    def resize(self, *, columns: int, rows: int) -> None:
        """Tell its terminal a new size; without a terminal nothing happens."""

    async def wait(self) -> int:
        """The exit code; raises `RuntimeUnavailableError` if the container ended first and took it away."""


@runtime_checkable
class HasNetwork(Protocol):
    """A runtime whose pods need a network of their own, which may not be there."""

    @property
    def network_problem(self) -> str:
        """Why pods cannot have their network now; empty when they can."""


@runtime_checkable
class OwnNetwork(Protocol):
    """A runtime whose pods have addresses of their own, unless they ask for the node's network."""

    network_is_own: bool


@runtime_checkable
class WithoutImages(Protocol):
    """A runtime to which an image is a name only: there is nothing to look for, to pull, or to report."""

    image_is_name_only: bool


class Runtime(Protocol):
    """What runs the containers of a node. Opened with `async with`; closing it ends nothing that runs."""

    # As in the ID of a container's status: <name>://<id>.
    name: str

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *failure: object) -> None: ...

    async def version(self) -> str:
        """As in a node's `containerRuntimeVersion`; raises `RuntimeUnavailableError` while it does not answer."""

    async def run_sandbox(self, config: SandboxConfig) -> str:
        """Make a pod's sandbox ready; answers its ID. The same attempt twice is a conflict."""

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """End what runs in it, without grace, and let it be ready no more. One that is gone counts as stopped."""

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Stop and forget it with all its containers. One that is gone counts as removed."""

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus: ...

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]: ...

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        """Make a container ready to start; answers its ID. Name and attempt twice in one sandbox is a conflict."""

    async def start_container(self, container_id: str) -> None:
        """Returns when it runs. Raises `StartContainerError` where it cannot, a conflict where it once did."""

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        """Ask it to end, end it after the grace period. A second stop with less grace shortens the first."""

    async def remove_container(self, container_id: str) -> None:
        """Forget it; one that runs is ended first. One that is gone counts as removed. Its logs stay."""

    async def container_status(self, container_id: str) -> ContainerStatus: ...

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]: ...

    def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AbstractAsyncContextManager[ExecSession]:
        """Run a command beside the container's own; leaving the context ends what still runs of it."""

    async def exec_sync(
        self, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
    ) -> ExecResult:
        """Run a command to its end; raises `ExecTimeoutError` when it took too long, and has ended it."""

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        """What changes from now on, in order; whoever falls behind gets `RELIST` in place of what was lost."""

    async def find_image(self, image: str) -> str | None:
        """The reference of an image that is here already."""

    async def pull_image(self, image: str) -> str:
        """Get an image; answers its reference. Raises `ImagePullError`."""
