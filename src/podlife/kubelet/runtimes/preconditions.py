"""Preconditions that every runtime checks, with the same messages: unknown IDs, repeated attempts, exec in stopped
containers, log paths; and a lock that lets one kubelet at a time use a folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from podlife.errors import ConfigError
from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerRuntimeError,
    ContainerState,
    ExecError,
    InvalidContainerError,
    NotFoundInRuntimeError,
    Resources,
    SandboxConfig,
    SandboxState,
)

X = TypeVar("X")


class FolderLock:
    """Held by the one kubelet that uses the folder, while it lives."""

    def __init__(self, folder: Path, in_use: str = "") -> None:
        """`in_use` is the error message for other kubelets."""
        self._path = folder / "agent.lock"
        self._in_use = in_use or f"{folder} is in use by another node agent: give each a folder of its own"
        self._fd = -1

    def acquire(self) -> None:
        """Raises ConfigError while another kubelet holds it."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise ConfigError(self._in_use) from None

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def find(kind: str, known: Mapping[str, X], wanted_id: str) -> X:
    try:
        return known[wanted_id]
    except KeyError:
        raise NotFoundInRuntimeError(f"{kind} {wanted_id} not found") from None


def check_ready(sandbox_id: str, state: SandboxState) -> None:
    if state is not SandboxState.READY:
        raise ConflictInRuntimeError(f"sandbox {sandbox_id} is stopped: no container can be started in it")


def check_new_sandbox(config: SandboxConfig, of_the_pod: Iterable[tuple[str, SandboxConfig]]) -> None:
    """`of_the_pod` are the pod's existing sandboxes, by ID."""
    for other_id, other in of_the_pod:
        if other.attempt == config.attempt:
            raise ConflictInRuntimeError(
                f"attempt {config.attempt} at pod {config.namespace}/{config.name} has the sandbox {other_id}"
            )


def check_new_container(config: ContainerConfig, in_sandbox: Iterable[tuple[str, ContainerConfig]]) -> None:
    """`in_sandbox` are the sandbox's existing containers, by ID."""
    for other_id, other in in_sandbox:
        if (other.name, other.attempt) == (config.name, config.attempt):
            raise ConflictInRuntimeError(
                f"attempt {config.attempt} at container {config.name!r} exists as {other_id}"
            )


def started_before(name: str) -> ConflictInRuntimeError:
    return ConflictInRuntimeError(f"container {name!r} was started before")


def check_exec(command: Sequence[str], name: str, state: ContainerState) -> None:
    if not command:
        raise InvalidContainerError("no command was given to run in the container")
    check_running(name, state)


def check_running(name: str, state: ContainerState) -> None:
    if state is not ContainerState.RUNNING:
        raise ExecError(f"container {name!r} does not run: it is {state}")


def is_limited_further(new: Resources, old: Resources) -> bool:
    """Whether memory is limited to less than before."""
    limit, before = new.memory_limit_bytes, old.memory_limit_bytes
    return limit is not None and (before is None or limit < before)


def check_memory_usage(name: str, resources: Resources, usage_bytes: int) -> None:
    """A limit below the usage would have the container killed. Upstream's message."""
    limit_bytes = resources.memory_limit_bytes
    if limit_bytes is not None and usage_bytes >= limit_bytes:
        raise ContainerRuntimeError(
            f'cannot decrease memory limits: attempting to set container "{name}" memory limit ({limit_bytes}) '
            f"below current usage ({usage_bytes})"
        )


def log_path_of(sandbox: SandboxConfig, config: ContainerConfig) -> Path | None:
    """Never outside the sandbox's log directory: the names come from users."""
    if sandbox.log_directory is None or not config.log_path:
        return None
    relative = PurePosixPath(config.log_path)
    if relative.is_absolute() or ".." in relative.parts or "\0" in config.log_path or not relative.parts:
        raise InvalidContainerError(
            f"log path {config.log_path!r} of container {config.name!r} leaves the pod's folder of logs"
        )
    return Path(sandbox.log_directory) / relative


def make_private(folder: Path) -> None:
    """Create the folder and missing parents, accessible to the owner only."""
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        path.mkdir(mode=0o700, exist_ok=True)
