"""An update arrives: the next state of the pod, and the actions that follow. Pure.

A pod goes one way. Once it was asked to end, every update is a kill and can only shorten its grace period; once it has
ended, no update is taken for its UID until that is forgotten. Each kill waiter is notified in every case, even if the
update itself is dropped.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from podlife.kubelet.podworkers.grace_period import effective_grace
from podlife.kubelet.podworkers.state import CANCEL_STEP, LINE_UP, NOTHING, WAKE, Action, KillAnswer, PodState
from podlife.kubelet.podworkers.updates import (
    CREATE,
    KILL,
    KillOptions,
    KillOutcome,
    PodUpdate,
    has_ended,
    is_static,
)

_WAKE: tuple[Action, ...] = (WAKE,)
_CANCEL_AND_WAKE: tuple[Action, ...] = (WAKE, CANCEL_STEP)
_LINE_UP: tuple[Action, ...] = (LINE_UP,)
_NO_KILL = KillOptions()


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
        fresh: PodState = _first_seen(update, now, is_stopped)
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
