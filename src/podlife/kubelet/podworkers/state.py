"""The updates that pod workers accept, and the state of a pod.

A pod known only from the runtime (`RunningPod`) has no spec; it can only be terminated. A state is immutable: each
event produces the next state and the actions that follow (`transitions`, `Action`). Nothing here waits, acts or reads
the time.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from podlife.kubelet.pod import NodePod, RunningPod

# The source of a pod, set by the reader of manifests and on mirror pods.
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
    # None of the pod's containers is running or will be started.
    STOPPED = "stopped"
    # The update that carried the waiter did not request a kill.
    NOT_KILLED = "not killed"
    # The workers shut down first: the outcome is unknown.
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
    """Has `pod` or `running`; with both, `running` is ignored (PW-11)."""

    type: UpdateType
    pod: NodePod | None = None
    running: RunningPod | None = None
    mirror: NodePod | None = None
    kill: KillOptions | None = None
    # When the kubelet received the change (monotonic time): start of the measured latency.
    asked_at: float | None = None

    @property
    def uid(self) -> str:
        """Raises ValueError if the update has no pod."""
        if self.pod is not None:
            return self.pod.metadata.uid
        if self.running is not None:
            return self.running.uid
        raise ValueError(f"the {self.type.value} update is about no pod")


class Stage(enum.Enum):
    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


# Module constants, because tens of thousands of steps run per second and an enum attribute lookup costs ten times as
# much. The same holds for the actions below.
SYNC, TERMINATING, TERMINATED = Stage


class WorkerAction(enum.Enum):
    # Run a step as soon as none is running.
    WAKE = "wake"
    # The update supersedes the running step, if there is one.
    CANCEL_STEP = "cancel step"
    # A static pod starts to wait for its name.
    QUEUE_FOR_NAME = "queue for name"
    # The pod has ended and gives its name back.
    RELEASE_NAME = "release name"


WAKE, CANCEL_STEP, QUEUE_FOR_NAME, RELEASE_NAME = WorkerAction


class NotifyWaiters(msgspec.Struct, frozen=True):
    waiters: tuple[Waiter, ...]
    outcome: KillOutcome


Action = WorkerAction | NotifyWaiters
NOTHING: tuple[Action, ...] = ()


class PodState(msgspec.Struct, frozen=True):
    """Times are monotonic, None means never. A pod only moves forward, in the order of the fields."""

    synced_at: float
    # When its first step began.
    started_at: float | None = None
    # When termination was requested; a step may still be starting containers.
    terminating_at: float | None = None
    # When the last of its containers had stopped.
    terminated_at: float | None = None
    # Grace period for termination; 0 if not set yet.
    grace_seconds: int = 0
    waiters: tuple[Waiter, ...] = ()
    # Only the last one is used (PW-34).
    status_override: StatusOverride | None = None
    # The terminating step has begun: no container can be started from now on.
    is_acknowledged: bool = False
    is_deleted: bool = False
    is_evicted: bool = False
    is_finished: bool = False
    # A create with the same UID arrived; the pod is created again after it is forgotten.
    is_restart_requested: bool = False
    is_seen_in_runtime: bool = False
    # Input of the next step; the newest update wins.
    pending: PodUpdate | None = None
    # Input of the last step; None for a pod that may not start yet.
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
        """The pod of the last step, or of the first one to come."""
        update = self.active or self.pending
        return None if update is None else update.pod
