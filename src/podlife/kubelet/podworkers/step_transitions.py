"""A step of a pod begins or ends: the next state, and the actions that follow. Pure.

The step is chosen by the stage of the pod when it begins, and moves the pod on when it succeeds. A failed step changes
nothing: it is tried again.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from podlife.kubelet.podworkers.state import (
    NOTHING,
    RELEASE_NAME,
    TERMINATED,
    TERMINATING,
    Action,
    KillAnswer,
    PodState,
    Stage,
)
from podlife.kubelet.podworkers.updates import KillOutcome, PodUpdate, UpdateType, Waiter

_SYNC = UpdateType.SYNC
_RELEASE: tuple[Action, ...] = (RELEASE_NAME,)


class StepWork(msgspec.Struct, frozen=True):
    """What one step does."""

    stage: Stage
    update: PodUpdate


def needs_admission(state: PodState, update: PodUpdate) -> bool:
    """Whether the pod has yet to be let run; what is only known from the runtime runs already (PW-72)."""
    return state.started_at is None and update.running is None


def begin(state: PodState, update: PodUpdate, now: float, *, is_start: bool) -> tuple[PodState, StepWork]:
    """The pending update becomes the active one; with `is_start` the pod counts as started from now on, even if this
    step only ends it (PW-71)."""
    started_at = now if is_start else state.started_at
    after = replace(state, pending=None, active=_merged(state.active, update), started_at=started_at)
    return after, StepWork(state.stage, update)


def end_before_start(state: PodState, now: float) -> tuple[PodState, tuple[Action, ...]]:
    """It was asked to end before it could start: there is nothing to stop (PW-70)."""
    after = replace(
        state, pending=None, terminated_at=now, is_finished=True, waiters=(), status_override=None
    )
    return after, _RELEASE + _answers(state.waiters)


def acknowledge(state: PodState) -> PodState:
    """The terminating step begins: no container is started from now on (PW-83)."""
    return state if state.is_acknowledged else replace(state, is_acknowledged=True)


def succeed(
    state: PodState, work: StepWork, now: float, *, is_terminal: bool = False
) -> tuple[PodState | None, tuple[Action, ...]]:
    """The step has done what it should. The state is None when there is nothing more to know about the pod. When the
    pod moves on, the next step sees what this one saw, unless something newer waits already."""
    if work.stage is TERMINATED:
        return replace(state, is_finished=True, pending=None), _RELEASE
    if work.stage is TERMINATING:
        if work.update.running is not None:
            return None, _RELEASE + _answers(state.waiters)
        after = replace(
            state, terminated_at=now, waiters=(), status_override=None, pending=state.pending or state.active
        )
        return after, _answers(state.waiters)
    if not is_terminal:
        return state, NOTHING
    # A kill may have come while the step was running: the pod is ending since then.
    terminating_at = now if state.terminating_at is None else state.terminating_at
    pending = state.pending or state.active
    return replace(state, terminating_at=terminating_at, is_acknowledged=True, pending=pending), NOTHING


def _merged(known: PodUpdate | None, update: PodUpdate) -> PodUpdate:
    """What is remembered of an update, for who asks and for a replay (PW-89)."""
    pod, mirror, kill = update.pod, update.mirror, update.kill
    if known is not None:
        pod = known.pod if update.running is not None and known.pod is not None else pod
        mirror = known.mirror if mirror is None else mirror
        kill = known.kill if kill is None else kill
    return PodUpdate(_SYNC, pod, update.running, mirror, kill)


def _answers(waiters: tuple[Waiter, ...]) -> tuple[Action, ...]:
    return (KillAnswer(waiters, KillOutcome.STOPPED),) if waiters else NOTHING
