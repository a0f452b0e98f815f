"""The state of a pod in the workers.

A state is immutable: each event makes another (`update_transitions`, `step_transitions`, `sync_known_pods`) and returns
the actions that follow (`Action`). Nothing here waits, acts or reads the time.
"""

from __future__ import annotations

import enum

import msgspec

from podlife.kubelet.pod import NodePod
from podlife.kubelet.podworkers.updates import KillOutcome, PodUpdate, StatusOverride, Waiter


class Stage(enum.Enum):
    """Which step is next."""

    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


# Steps are counted by the ten thousand a second, and a member that is looked up in its class costs ten times as much
# as one that is at hand. So it is with the acts below.
SYNC, TERMINATING, TERMINATED = Stage


class WorkerAction(enum.Enum):
    """What is to be done for a pod."""

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
    """Tell those who wait."""

    waiters: tuple[Waiter, ...]
    outcome: KillOutcome


Action = WorkerAction | KillAnswer
NOTHING: tuple[Action, ...] = ()


class PodState(msgspec.Struct, frozen=True):
    """Times are the workers' own; None is never. They only go forward: synced, started, terminating, terminated,
    finished."""

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
