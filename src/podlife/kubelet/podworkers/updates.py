"""Updates of pods that the workers take, and the few questions that they ask of a pod.

A pod that only the runtime knows (`RunningPod`) has no specification; it can be ended and nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from podlife.kubelet.pod import NodePod, RunningPod

# Where a pod came from; a mirror on the API server and whoever reads a manifest write it.
CONFIG_SOURCE = "kubernetes.io/config.source"


def is_static(pod: NodePod) -> bool:
    """Whether it came from somewhere else than the API server."""
    return pod.metadata.annotations.get(CONFIG_SOURCE, "api") != "api"


def has_ended(pod: NodePod) -> bool:
    return pod.status.phase in ("Failed", "Succeeded")


def full_name(pod: NodePod) -> str:
    return f"{pod.metadata.name}_{pod.metadata.namespace}"


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
# Changes the status that the kubelet is about to report for the pod.
StatusOverride = Callable[[Any], None]


class KillOptions(msgspec.Struct, frozen=True):
    """`waiter` is called exactly once."""

    waiter: Waiter | None = None
    evict: bool = False
    status_override: StatusOverride | None = None
    grace_seconds: int | None = None


class PodUpdate(msgspec.Struct, frozen=True):
    """One of `pod` and `running` is given; with both, only the pod counts (PW-11)."""

    type: UpdateType
    pod: NodePod | None = None
    running: RunningPod | None = None
    mirror: NodePod | None = None
    kill: KillOptions | None = None
    # When the change arrived at the kubelet, by the workers' own time: the latency that is measured begins there.
    asked_at: float | None = None

    @property
    def uid(self) -> str:
        """Raises ValueError where there is no pod at all."""
        if self.pod is not None:
            return self.pod.metadata.uid
        if self.running is not None:
            return self.running.uid
        raise ValueError(f"the {self.type.value} update is about no pod")
