"""What the workers are told about a pod, and what of it they look at.

A pod is any view that has these fields: the workers read them and hand the pod on as it is. One that is only known from
the runtime has no specification; it can be ended and nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sized
from typing import Any, Generic, Protocol, TypeVar

import msgspec

__all__ = [
    "CREATE",
    "KILL",
    "KillOptions",
    "KillOutcome",
    "P",
    "Pod",
    "PodUpdate",
    "R",
    "RunningPod",
    "StatusOverride",
    "UpdateType",
    "Waiter",
    "full_name",
    "has_ended",
    "is_static",
    "reference",
]

# Where a pod came from; a mirror on the API server and whoever reads a manifest write it.
CONFIG_SOURCE = "kubernetes.io/config.source"


class PodMetadata(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def deletion_timestamp(self) -> object | None: ...
    @property
    def deletion_grace_period_seconds(self) -> int | None: ...


class PodSpec(Protocol):
    @property
    def termination_grace_period_seconds(self) -> int | None: ...
    @property
    def containers(self) -> Sized: ...


class PodStatus(Protocol):
    @property
    def phase(self) -> str: ...


class Pod(Protocol):
    @property
    def metadata(self) -> PodMetadata: ...
    @property
    def spec(self) -> PodSpec: ...
    @property
    def status(self) -> PodStatus: ...


class RunningPod(Protocol):
    """A pod as the runtime knows it."""

    @property
    def uid(self) -> str: ...


P = TypeVar("P", bound=Pod)
R = TypeVar("R", bound=RunningPod)


def is_static(pod: Pod) -> bool:
    """Whether it came from somewhere else than the API server."""
    return pod.metadata.annotations.get(CONFIG_SOURCE, "api") != "api"


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Failed", "Succeeded")


def full_name(pod: Pod) -> str:
    return f"{pod.metadata.name}_{pod.metadata.namespace}"


def reference(pod: Pod) -> dict[str, str]:
    """What an event regards."""
    metadata = pod.metadata
    name, namespace = metadata.name, metadata.namespace
    return {"kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": name, "uid": metadata.uid}


class UpdateType(enum.Enum):
    CREATE = "create"
    UPDATE = "update"
    SYNC = "sync"
    KILL = "kill"


CREATE, KILL = UpdateType.CREATE, UpdateType.KILL


class KillOutcome(enum.Enum):
    """What whoever waits is told."""

    # No container of the pod runs, and none will.
    STOPPED = "stopped"
    # The update that they came with asked for no kill.
    NOT_KILLED = "not killed"
    # The workers themselves ended first: nothing is known.
    CLOSED = "closed"


Waiter = Callable[[KillOutcome], None]
# Changes the status that the agent is about to report for the pod.
StatusOverride = Callable[[Any], None]


class KillOptions(msgspec.Struct, frozen=True):
    """`waiter` is called exactly once."""

    waiter: Waiter | None = None
    evict: bool = False
    status_override: StatusOverride | None = None
    grace_seconds: int | None = None


class PodUpdate(msgspec.Struct, Generic[P, R], frozen=True):
    """One of `pod` and `running` is given; with both, only the pod counts (PW-11)."""

    type: UpdateType
    pod: P | None = None
    running: R | None = None
    mirror: P | None = None
    kill: KillOptions | None = None
    # When the change arrived at the agent, by the workers' own time: the latency that is measured begins there.
    asked_at: float | None = None

    @property
    def uid(self) -> str:
        """Raises ValueError where there is no pod at all."""
        if self.pod is not None:
            return self.pod.metadata.uid
        if self.running is not None:
            return self.running.uid
        raise ValueError(f"the {self.type.value} update is about no pod")
