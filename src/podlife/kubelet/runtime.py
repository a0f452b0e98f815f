"""The interface between the kubelet and container runtimes.

The verbs are about those of CRI: sandboxes are run, stopped and removed; containers are created, started, stopped and
removed; both have a status and can be listed; commands can be executed; events report changes. Every runtime passes
`tests/conformance/runtime`.

Every runtime guarantees: containers and exit codes outlive the kubelet until they are removed. Stop and remove are
idempotent. A container is started at most once. `stop_container` returns when none of the container's processes runs.
The kubelet is responsible for restart policy, hooks, probes, backoff, log deletion and the contents of volumes.
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
    """A request to the runtime failed."""


class RuntimeUnavailableError(ContainerRuntimeError):
    """The runtime did not respond in time; the request may have taken effect. Check before retrying."""


class NotFoundInRuntimeError(ContainerRuntimeError):
    """The sandbox or container does not exist. For a stop or removal, that is success."""


class ConflictInRuntimeError(ContainerRuntimeError):
    """The name is taken, or the state does not allow the request; a container is started only once."""


class InvalidContainerError(ContainerRuntimeError):
    """The runtime does not support this container configuration; the message says what to change."""


class StartContainerError(ContainerRuntimeError):
    """The container could not be started. It has exited, with a code and a reason, and cannot be started again."""


class ExecError(ContainerRuntimeError):
    """The command could not be started in the container."""


class ExecTimeoutError(ExecError):
    """The command timed out and was killed."""


class ImagePullError(ContainerRuntimeError):
    """The image could not be pulled. `reason` is shown in the container's waiting state, such as `ErrImagePull`."""

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
    """A file or folder of the node, mounted into the container."""

    container_path: str
    host_path: str
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of a container; None means none, or unlimited. No runtime enforces a memory request."""

    cpu_request_millis: int | None = None
    cpu_limit_millis: int | None = None
    memory_limit_bytes: int | None = None
    pids_limit: int | None = None
    memory_request_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class User:
    """The user and groups of a container's processes."""

    uid: int
    gid: int | None = None
    supplemental_groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """One attempt to run a pod. Container logs go to `log_directory`; without it nothing is logged."""

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
    """One attempt to run a container. `log_path` is relative to the sandbox's `log_directory`.

    References in command, arguments and environment are already expanded. The termination message is read from the file
    at `termination_message_path`.
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
    stdin: bool = False
    # The first attached session that ends closes the input.
    stdin_once: bool = False
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
    """A container as the runtime knows it. `reason` and `message` are those of a terminated container's state:
    `Completed`, `Error`, `OOMKilled`, `StartError`, or `ContainerStatusUnknown` if the exit was not observed."""

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
        """It is running, or its state is unknown and it may be running."""
        return self.state in (ContainerState.RUNNING, ContainerState.UNKNOWN)


class EventKind(StrEnum):
    SANDBOX_STARTED = "SandboxStarted"
    SANDBOX_STOPPED = "SandboxStopped"
    SANDBOX_REMOVED = "SandboxRemoved"
    CONTAINER_CREATED = "ContainerCreated"
    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_STOPPED = "ContainerStopped"
    CONTAINER_REMOVED = "ContainerRemoved"
    # Events were lost; only a list shows the current state.
    RELIST = "Relist"


@dataclass(frozen=True, slots=True)
class RuntimeEvent:
    """A change to a sandbox or container; its status has the details."""

    kind: EventKind
    pod_uid: str = ""
    sandbox_id: str = ""
    container_id: str = ""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The exit code of a command and its output, truncated to the limit."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class ExecSession(Protocol):
    """A command running in a container. With a terminal, all output is on `stdout`."""

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader

    async def write_stdin(self, data: bytes) -> None: ...

    async def close_stdin(self) -> None: ...

    def resize(self, *, columns: int, rows: int) -> None:
        """Resize its terminal; without one, nothing happens."""

    async def wait(self) -> int:
        """The exit code. Raises `RuntimeUnavailableError` if the container ended before it was known."""


class PodConnection(Protocol):
    """A connection to a port of a pod."""

    reader: asyncio.StreamReader

    async def write(self, data: bytes) -> None:
        """Waits while the pod does not read. Raises OSError if it has disconnected."""

    async def write_eof(self) -> None: ...


@runtime_checkable
class Attachable(Protocol):
    """A runtime that can attach to the streams of a container's main process."""

    def attach(self, container_id: str, *, stdin: bool) -> AbstractAsyncContextManager[ExecSession]:
        """The output from now on, and the input if the container has one. Its `wait` returns 0 when the streams have
        ended; leaving the context leaves the process alone, but closes an input that is meant for one session."""


@runtime_checkable
class ForwardsPorts(Protocol):
    """A runtime that can connect to ports of a pod, on the pod's own loopback."""

    def port_forward(self, sandbox_id: str, port: int) -> AbstractAsyncContextManager[PodConnection]:
        """Raises ContainerRuntimeError if the port is not served."""


@runtime_checkable
class HasNetwork(Protocol):
    """A runtime whose pods need a pod network, which may be unavailable."""

    @property
    def network_problem(self) -> str:
        """Why the pod network is unavailable; empty if it is available."""


@runtime_checkable
class OwnNetwork(Protocol):
    """A runtime whose pods have their own addresses, unless they use the host's network."""

    network_is_own: bool


@runtime_checkable
class WithoutImages(Protocol):
    """A runtime that does not use images: there is nothing to find, pull or report."""

    image_is_name_only: bool


class Runtime(Protocol):
    """Runs the containers of a node. Opened with `async with`; closing it stops no container."""

    # The scheme of container IDs in statuses: <name>://<id>.
    name: str

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *failure: object) -> None: ...

    async def version(self) -> str:
        """As in a node's `containerRuntimeVersion`. Raises `RuntimeUnavailableError` if it does not respond."""

    async def run_sandbox(self, config: SandboxConfig) -> str:
        """Create and start a pod's sandbox; returns its ID. The same attempt twice is a conflict."""

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Stop its containers without grace, and the sandbox. A missing sandbox counts as stopped."""

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Stop and remove it with all its containers. A missing sandbox counts as removed."""

    async def sandbox_status(self, sandbox_id: str) -> SandboxStatus: ...

    async def list_sandboxes(self, *, pod_uid: str | None = None) -> list[SandboxStatus]: ...

    async def create_container(self, sandbox_id: str, config: ContainerConfig) -> str:
        """Create a container; returns its ID. The same name and attempt twice in one sandbox is a conflict."""

    async def start_container(self, container_id: str) -> None:
        """Return when it is running. Raises `StartContainerError` on failure, a conflict if it was started before."""

    async def stop_container(self, container_id: str, *, grace_seconds: float) -> None:
        """Send the stop signal, and kill it after the grace period. A second stop can shorten the grace period."""

    async def remove_container(self, container_id: str) -> None:
        """Remove it; a running container is killed first. A missing one counts as removed. Its logs stay."""

    async def update_container_resources(self, container_id: str, resources: Resources) -> None:
        """Change the resources of a running container, which its configuration shows from then on. Raises if the
        container uses more memory than the new limit."""

    async def container_status(self, container_id: str) -> ContainerStatus: ...

    async def list_containers(
        self, *, pod_uid: str | None = None, sandbox_id: str | None = None
    ) -> list[ContainerStatus]: ...

    def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AbstractAsyncContextManager[ExecSession]:
        """Run a command in the container; leaving the context kills it."""

    async def exec_sync(
        self, container_id: str, command: Sequence[str], *, timeout_seconds: float | None = None
    ) -> ExecResult:
        """Run a command and wait for it. Raises `ExecTimeoutError` on timeout, after killing it."""

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[RuntimeEvent]]:
        """Changes from now on, in order; a slow subscriber gets `RELIST` in place of lost events."""

    async def find_image(self, image: str) -> str | None:
        """The reference of an image that is present."""

    async def pull_image(self, image: str) -> str:
        """Pull an image; returns its reference. Raises `ImagePullError`."""
