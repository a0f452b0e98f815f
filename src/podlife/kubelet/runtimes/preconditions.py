"""Preconditions that every runtime checks, with the same messages: unknown IDs, repeated attempts, commands for
containers that do not run. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerConfig,
    ContainerState,
    ExecError,
    InvalidContainerError,
    NotFoundInRuntimeError,
    SandboxConfig,
    SandboxState,
)

X = TypeVar("X")


def find_sandbox(sandboxes: Mapping[str, X], sandbox_id: str) -> X:
    try:
        return sandboxes[sandbox_id]
    except KeyError:
        raise NotFoundInRuntimeError(f"there is no sandbox {sandbox_id}") from None


def find_container(containers: Mapping[str, X], container_id: str) -> X:
    try:
        return containers[container_id]
    except KeyError:
        raise NotFoundInRuntimeError(f"there is no container {container_id}") from None


def check_ready(sandbox_id: str, state: SandboxState) -> None:
    if state is not SandboxState.READY:
        raise ConflictInRuntimeError(f"sandbox {sandbox_id} is stopped: nothing is started in it any more")


def check_new_sandbox(config: SandboxConfig, of_the_pod: Iterable[tuple[str, SandboxConfig]]) -> None:
    """Given the pod's sandboxes there are, by id."""
    for other_id, other in of_the_pod:
        if other.attempt == config.attempt:
            raise ConflictInRuntimeError(
                f"attempt {config.attempt} at pod {config.namespace}/{config.name} has the sandbox {other_id}"
            )


def check_new_container(config: ContainerConfig, in_sandbox: Iterable[tuple[str, ContainerConfig]]) -> None:
    """Given the sandbox's containers there are, by id."""
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
    if state is not ContainerState.RUNNING:
        raise ExecError(f"container {name!r} does not run: it is {state}")
