"""The transitions of a pod: each event makes the next state, and the actions that follow. Pure.

An event is an update (`accept`), a step that begins or succeeds (`begin`, `succeed`), or a comparison with the node's
configuration (`review`). A pod goes one way. Once it was asked to end, every update is a kill and can only shorten its
grace period; once it has ended, no update is taken for its UID until that is forgotten. A failed step changes nothing:
it is tried again. Each kill waiter is notified in every case, even if the update itself is dropped.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from podlife.kubelet.podworkers.state import (
    CANCEL_STEP,
    CREATE,
    KILL,
    LINE_UP,
    NOTHING,
    RELEASE_NAME,
    TERMINATED,
    TERMINATING,
    WAKE,
    Action,
    KillAnswer,
    KillOptions,
    KillOutcome,
    PodState,
    PodUpdate,
    Stage,
    UpdateType,
    Waiter,
    has_ended,
    is_static,
)

_WAKE: tuple[Action, ...] = (WAKE,)
_CANCEL_AND_WAKE: tuple[Action, ...] = (WAKE, CANCEL_STEP)
_LINE_UP: tuple[Action, ...] = (LINE_UP,)
_RELEASE: tuple[Action, ...] = (RELEASE_NAME,)
_NO_KILL = KillOptions()
_SYNC = UpdateType.SYNC


def effective_grace(
    stored: int, *, deletion: int | None = None, override: int | None = None, spec: int | None = None
) -> int:
    """The grace period from now on: once set it only shrinks, and it is never less than a second. `stored` is what the
    pod has by now, 0 when nothing; `deletion` is what the API server set, `override` what the kubelet asks for, `spec`
    what the pod asked for itself (PW-40)."""
    grace, is_given = stored, False
    if deletion is not None and (grace == 0 or deletion < grace):
        grace, is_given = deletion, True
    # A deletion with no grace counts as none set here, as it does upstream (PW-46).
    if override is not None and (grace == 0 or override < grace):
        grace, is_given = override, True
    if not is_given and grace == 0 and spec is not None:
        grace = spec
    # Upstream lets the same zero lengthen a grace that was given before; here it never grows.
    return max(1, min(grace, stored) if stored else grace)


# An update arrives


def accept(
    state: PodState | None, update: PodUpdate, now: float, *, is_stopped: bool = False
) -> tuple[PodState | None, tuple[Action, ...]]:
    """`state` is None for a UID that is not known, and stays so if the update is no reason to know it. `is_stopped`
    says, of a pod that is seen for the first time, that the runtime has nothing of it running."""
    if update.running is not None:
        if update.pod is not None:
            update = replace(update, running=None)
        elif update.type is not KILL:
            return state, _answered(update, KillOutcome.NOT_KILLED)
    if state is None:
        fresh = _first_seen(update, now, is_stopped)
        taken, actions = _take(fresh, update, now)
        is_in_line = update.pod is not None and is_static(update.pod)
        return taken, _LINE_UP + actions if is_in_line else actions
    if state.is_termination_requested and update.type is CREATE:
        return _wished_back(state, update)
    return _take(state, update, now)


def _first_seen(update: PodUpdate, now: float, is_stopped: bool) -> PodState:
    if is_stopped and update.pod is not None and has_ended(update.pod):
        # It ended before this kubelet was started: only its last step is left (PW-13).
        return PodState(now, terminating_at=now, terminated_at=now, is_acknowledged=True)
    return PodState(now)


def _wished_back(state: PodState, update: PodUpdate) -> tuple[PodState, tuple[Action, ...]]:
    """It cannot come back under its UID before it is forgotten: that is remembered, the update is not (PW-16)."""
    state = replace(state, is_restart_requested=True)
    if state.is_terminated:
        return state, _answered(update, KillOutcome.STOPPED)
    if update.kill is not None and update.kill.waiter is not None:
        state = replace(state, waiters=(*state.waiters, update.kill.waiter))
    return state, NOTHING


def _take(state: PodState, update: PodUpdate, now: float) -> tuple[PodState, tuple[Action, ...]]:
    changes: dict[str, Any] = {}
    is_runtime_only = update.running is not None
    if is_runtime_only:
        changes["is_seen_in_runtime"] = True
        update = _with_known_pod(state, update)
    if state.is_finished or (state.is_terminated and is_runtime_only):
        return replace(state, **changes), _answered(update, KillOutcome.STOPPED)
    is_new_end = False
    if state.terminating_at is None:
        is_new_end = _is_end(update, is_runtime_only, changes)
        if is_new_end:
            changes["terminating_at"] = now
    if state.is_terminated:
        actions = _WAKE + _answered(update, KillOutcome.STOPPED)
        update = replace(update, kill=None)
    elif is_new_end or state.is_termination_requested:
        update = _ending(state, update, changes)
        is_shorter = state.grace_seconds not in (0, changes["grace_seconds"])
        actions = _CANCEL_AND_WAKE if is_new_end or is_shorter else _WAKE
    else:
        actions = _WAKE
        if update.kill is not None:
            actions += _answered(update, KillOutcome.NOT_KILLED)
            update = replace(update, kill=None)
    changes["pending"] = update if state.pending is None else _with_older_start(state.pending, update)
    return replace(state, **changes), actions


def _with_known_pod(state: PodState, update: PodUpdate) -> PodUpdate:
    """What the runtime knows is not needed where there is a specification (PW-18)."""
    for known in (state.pending, state.active):
        if known is not None and known.pod is not None:
            return replace(update, pod=known.pod, running=None)
    return update


def _is_end(update: PodUpdate, is_runtime_only: bool, changes: dict[str, Any]) -> bool:
    """Whether the pod is to end from now on. Why it does is noted here and never again (PW-24)."""
    pod = update.pod
    if is_runtime_only or (pod is not None and pod.metadata.deletion_timestamp is not None):
        changes["is_deleted"] = True
        return True
    if pod is not None and has_ended(pod):
        return True
    if update.type is KILL:
        if update.kill is not None and update.kill.evict:
            changes["is_evicted"] = True
        return True
    return False


def _ending(state: PodState, update: PodUpdate, changes: dict[str, Any]) -> PodUpdate:
    """Take in what came with the kill; the update says how long the step has."""
    kill, pod = update.kill or _NO_KILL, update.pod
    if kill.waiter is not None:
        changes["waiters"] = (*state.waiters, kill.waiter)
    if kill.status_override is not None:
        changes["status_override"] = kill.status_override
    grace_seconds = effective_grace(
        state.grace_seconds,
        deletion=None if pod is None else pod.metadata.deletion_grace_period_seconds,
        override=kill.grace_seconds,
        spec=None if pod is None else pod.spec.termination_grace_period_seconds,
    )
    changes["grace_seconds"] = grace_seconds
    # Those who wait are kept in one place only: whoever drops an update drops nobody.
    return replace(update, kill=KillOptions(evict=kill.evict, grace_seconds=grace_seconds))


def _with_older_start(pending: PodUpdate, update: PodUpdate) -> PodUpdate:
    """The latency that is measured is that of whoever waits longest (PW-03)."""
    if pending.asked_at is None:
        return update
    if update.asked_at is not None and update.asked_at <= pending.asked_at:
        return update
    return replace(update, asked_at=pending.asked_at)


def _answered(update: PodUpdate, outcome: KillOutcome) -> tuple[Action, ...]:
    if update.kill is None or update.kill.waiter is None:
        return NOTHING
    return (KillAnswer((update.kill.waiter,), outcome),)


# A step begins or ends: it is chosen by the stage of the pod when it begins, and moves the pod on when it succeeds


class StepWork(msgspec.Struct, frozen=True):
    stage: Stage
    update: PodUpdate


def begin(state: PodState, update: PodUpdate, now: float, *, is_start: bool) -> tuple[PodState, StepWork]:
    """The pending update becomes active. With `is_start` the pod has started, even if the step ends it (PW-71)."""
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


# The node's configuration is compared with what the workers know


class KnownPod(msgspec.Struct, frozen=True):
    """What the workers have of a UID. One that is an orphan is not in the node's configuration any more; without
    config it is only known from the runtime, or has ended before it started."""

    stage: Stage
    is_orphan: bool
    has_config: bool
    is_static: bool


def review(state: PodState, now: float, *, is_orphan: bool) -> tuple[PodState | None, tuple[Action, ...]]:
    """What becomes of a pod that is or is not wanted any more. The state is None for one that is forgotten: only a pod
    that has ended, or has never begun; until then its UID is not used again."""
    if state.is_finished:
        return (None if is_orphan or state.is_restart_requested else state), NOTHING
    if not is_orphan:
        return state, NOTHING
    if state.started_at is None and not state.is_seen_in_runtime:
        # Nothing of it was ever started: there is nothing to stop, and nobody to wait for (PW-154).
        return None, _answers(state.waiters)
    # Nobody else will send it an update: it sees its last one again, unless something newer waits already.
    after = replace(state, is_deleted=True, pending=state.pending or state.active)
    if state.terminating_at is None:
        after = replace(after, terminating_at=now, grace_seconds=_orphan_grace(state))
    return after, NOTHING if after.pending is None else _WAKE


def _orphan_grace(state: PodState) -> int:
    """It is stored; the step is told none and takes what the pod asked for (PW-157)."""
    pod = None if state.active is None else state.active.pod
    if pod is None:
        return 1
    return effective_grace(
        state.grace_seconds,
        deletion=pod.metadata.deletion_grace_period_seconds,
        spec=pod.spec.termination_grace_period_seconds,
    )


def known_pod(state: PodState, *, is_orphan: bool) -> KnownPod:
    pod = state.config
    return KnownPod(state.stage, is_orphan, pod is not None, pod is not None and is_static(pod))
