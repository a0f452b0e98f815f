"""What the workers know of a pod: the updates they take, and the state that these make of it.

A pod that only the runtime knows (`RunningPod`) has no specification; it can be ended and nothing else. A state is
immutable: each event makes another (`transitions`) and returns the actions that follow (`Action`). Nothing here waits,
acts or reads the time.
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


class Stage(enum.Enum):
    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


# Steps are counted by the ten thousand a second, and a member that is looked up in its class costs ten times as much
# as one that is at hand. So it is with the acts below.
SYNC, TERMINATING, TERMINATED = Stage


class WorkerAction(enum.Enum):
    # Run a step as soon as none is running.
    WAKE = "wake"
    # The step that is running, if one is, works towards what nobody wants any more.
    CANCEL_STEP = "cancel step"
    # A static pod stands in line for its name from now on.
    LINE_UP = "line up"
    # The pod has ended: its name is free.
    RELEASE_NAME = "release name"


WAKE, CANCEL_STEP, LINE_UP, RELEASE_NAME = WorkerAction


class KillAnswer(msgspec.Struct, frozen=True):
    waiters: tuple[Waiter, ...]
    outcome: KillOutcome


Action = WorkerAction | KillAnswer
NOTHING: tuple[Action, ...] = ()


class PodState(msgspec.Struct, frozen=True):
    """Times are the workers' own, None is never; a pod only goes forward, in the order of the fields."""

    synced_at: float
    # When it was first let run.
    started_at: float | None = None
    # When it was asked to end; a step may still be starting containers.
    terminating_at: float | None = None
    # When none of its containers was running any more.
    terminated_at: float | None = None
    # What it has to end in; 0 as long as nobody has said.
    grace_seconds: int = 0
    waiters: tuple[Waiter, ...] = ()
    # Of all that were given only the last is ever used (PW-34).
    status_override: StatusOverride | None = None
    # The terminating step has begun: no container can be started any more.
    is_acknowledged: bool = False
    is_deleted: bool = False
    is_evicted: bool = False
    is_finished: bool = False
    # Somebody wants to create it again under its UID, when it is forgotten.
    is_restart_requested: bool = False
    is_seen_in_runtime: bool = False
    # What the next step is to see; the newest wins.
    pending: PodUpdate | None = None
    # What the last step saw: a pod that may not start yet has none.
    active: PodUpdate | None = None

    @property
    def stage(self) -> Stage:
        if self.terminated_at is not None:
            return TERMINATED
        return SYNC if self.terminating_at is None else TERMINATING

    @property
    def is_termination_requested(self) -> bool:
        return self.terminating_at is not None

    @property
    def is_terminated(self) -> bool:
        return self.terminated_at is not None

    @property
    def config(self) -> NodePod | None:
        """The pod that a step sees, or will see first."""
        update = self.active or self.pending
        return None if update is None else update.pod
