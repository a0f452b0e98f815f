"""The transitions of a pod: each event produces the next state and the actions that follow. Pure.

An event is an update (`accept`), a step that begins or succeeds (`begin`, `succeed`), or a comparison with the node's
configuration (`review`). A pod moves in one direction. After termination was requested, every update is a kill and can
only shorten the grace period; after the pod has ended, updates for its UID are dropped until it is forgotten. A failed
step changes nothing and is retried. Each kill waiter is notified, even if its update is dropped.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from podlife.kubelet.podworkers.state import (
    CANCEL_STEP,
    CREATE,
    KILL,
    NOTHING,
    QUEUE_FOR_NAME,
    RELEASE_NAME,
    TERMINATED,
    TERMINATING,
    WAKE,
    Action,
    KillOptions,
    KillOutcome,
    NotifyWaiters,
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
_QUEUE_FOR_NAME: tuple[Action, ...] = (QUEUE_FOR_NAME,)
_RELEASE: tuple[Action, ...] = (RELEASE_NAME,)
_NO_KILL = KillOptions()
_SYNC = UpdateType.SYNC


def effective_grace(
    stored: int, *, deletion: int | None = None, override: int | None = None, spec: int | None = None
) -> int:
    """The new grace period: once set it only shrinks, and it is at least one second. `stored` is the current value, 0
    if not set; `deletion` comes from the API server, `override` from the kubelet, `spec` from the pod's spec
    (PW-40)."""
    grace, is_given = stored, False
    if deletion is not None and (grace == 0 or deletion < grace):
        grace, is_given = deletion, True
    # As upstream, a deletion with grace 0 counts as not set (PW-46).
    if override is not None and (grace == 0 or override < grace):
        grace, is_given = override, True
    if not is_given and grace == 0 and spec is not None:
        grace = spec
    # Upstream lets the same zero extend a grace period set before; here it never grows.
    return max(1, min(grace, stored) if stored else grace)


# An update arrives


def accept(
    state: PodState | None, update: PodUpdate, now: float, *, is_stopped: bool = False
) -> tuple[PodState | None, tuple[Action, ...]]:
    """`state` is None for an unknown UID, and stays None if the update does not create it. `is_stopped`: the pod is
    new, and none of its containers is running."""
    if update.running is not None:
        if update.pod is not None:
            update = replace(update, running=None)
        elif update.type is not KILL:
            return state, _notify_waiter(update, KillOutcome.NOT_KILLED)
    if state is None:
        fresh = _first_seen(update, now, is_stopped)
        taken, actions = _apply(fresh, update, now)
        is_queued = update.pod is not None and is_static(update.pod)
        return taken, _QUEUE_FOR_NAME + actions if is_queued else actions
    if state.is_termination_requested and update.type is CREATE:
        return _request_restart(state, update)
    return _apply(state, update, now)


def _first_seen(update: PodUpdate, now: float, is_stopped: bool) -> PodState:
    if is_stopped and update.pod is not None and has_ended(update.pod):
        # The pod ended before this kubelet started: only its terminated step is left (PW-13).
        return PodState(now, terminating_at=now, terminated_at=now, is_acknowledged=True)
    return PodState(now)


def _request_restart(state: PodState, update: PodUpdate) -> tuple[PodState, tuple[Action, ...]]:
    """A UID cannot be reused before it is forgotten: remember the request, drop the update (PW-16)."""
    state = replace(state, is_restart_requested=True)
    if state.is_terminated:
        return state, _notify_waiter(update, KillOutcome.STOPPED)
    if update.kill is not None and update.kill.waiter is not None:
        state = replace(state, waiters=(*state.waiters, update.kill.waiter))
    return state, NOTHING


def _apply(state: PodState, update: PodUpdate, now: float) -> tuple[PodState, tuple[Action, ...]]:
    changes: dict[str, Any] = {}
    is_runtime_only = update.running is not None
    if is_runtime_only:
        changes["is_seen_in_runtime"] = True
        update = _with_known_pod(state, update)
    if state.is_finished or (state.is_terminated and is_runtime_only):
        return replace(state, **changes), _notify_waiter(update, KillOutcome.STOPPED)
    is_new_termination = False
    if state.terminating_at is None:
        is_new_termination = _starts_termination(update, is_runtime_only, changes)
        if is_new_termination:
            changes["terminating_at"] = now
    if state.is_terminated:
        actions = _WAKE + _notify_waiter(update, KillOutcome.STOPPED)
        update = replace(update, kill=None)
    elif is_new_termination or state.is_termination_requested:
        update = _with_kill_options(state, update, changes)
        is_shorter = state.grace_seconds not in (0, changes["grace_seconds"])
        actions = _CANCEL_AND_WAKE if is_new_termination or is_shorter else _WAKE
    else:
        actions = _WAKE
        if update.kill is not None:
            actions += _notify_waiter(update, KillOutcome.NOT_KILLED)
            update = replace(update, kill=None)
    changes["pending"] = update if state.pending is None else _with_earliest_start(state.pending, update)
    return replace(state, **changes), actions


def _with_known_pod(state: PodState, update: PodUpdate) -> PodUpdate:
    """Prefer a known spec to the runtime's view of the pod (PW-18)."""
    for known in (state.pending, state.active):
        if known is not None and known.pod is not None:
            return replace(update, pod=known.pod, running=None)
    return update


def _starts_termination(update: PodUpdate, is_runtime_only: bool, changes: dict[str, Any]) -> bool:
    """Whether the update starts termination. The cause is recorded only here (PW-24)."""
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


def _with_kill_options(state: PodState, update: PodUpdate, changes: dict[str, Any]) -> PodUpdate:
    """Record the options of a kill; returns the update with the effective grace period."""
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
    # Waiters are kept in the state only, so that dropping an update drops no waiter.
    return replace(update, kill=KillOptions(evict=kill.evict, grace_seconds=grace_seconds))


def _with_earliest_start(pending: PodUpdate, update: PodUpdate) -> PodUpdate:
    """Keep the earliest receipt time, so that the measured latency is the longest wait (PW-03)."""
    if pending.asked_at is None:
        return update
    if update.asked_at is not None and update.asked_at <= pending.asked_at:
        return update
    return replace(update, asked_at=pending.asked_at)


def _notify_waiter(update: PodUpdate, outcome: KillOutcome) -> tuple[Action, ...]:
    if update.kill is None or update.kill.waiter is None:
        return NOTHING
    return (NotifyWaiters((update.kill.waiter,), outcome),)


# A step begins or succeeds


class StepWork(msgspec.Struct, frozen=True):
    stage: Stage
    update: PodUpdate


def begin(state: PodState, update: PodUpdate, now: float, *, is_start: bool) -> tuple[PodState, StepWork]:
    """Make the pending update active. With `is_start` the pod counts as started, even if this step ends it (PW-71)."""
    started_at = now if is_start else state.started_at
    after = replace(state, pending=None, active=_merged(state.active, update), started_at=started_at)
    return after, StepWork(state.stage, update)


def end_before_start(state: PodState, now: float) -> tuple[PodState, tuple[Action, ...]]:
    """Termination was requested before the pod started: there is nothing to stop (PW-70)."""
    after = replace(
        state, pending=None, terminated_at=now, is_finished=True, waiters=(), status_override=None
    )
    return after, _RELEASE + _notify_stopped(state.waiters)


def acknowledge(state: PodState) -> PodState:
    """The terminating step begins: no container is started from now on (PW-83)."""
    return state if state.is_acknowledged else replace(state, is_acknowledged=True)


def succeed(
    state: PodState, work: StepWork, now: float, *, is_terminal: bool = False
) -> tuple[PodState | None, tuple[Action, ...]]:
    """The state after a successful step; None if the pod can be forgotten. The next step gets the input of this one,
    unless a newer update is pending."""
    if work.stage is TERMINATED:
        return replace(state, is_finished=True, pending=None), _RELEASE
    if work.stage is TERMINATING:
        if work.update.running is not None:
            return None, _RELEASE + _notify_stopped(state.waiters)
        after = replace(
            state, terminated_at=now, waiters=(), status_override=None, pending=state.pending or state.active
        )
        return after, _notify_stopped(state.waiters)
    if not is_terminal:
        return state, NOTHING
    # A kill may have arrived while the step was running.
    terminating_at = now if state.terminating_at is None else state.terminating_at
    pending = state.pending or state.active
    return replace(state, terminating_at=terminating_at, is_acknowledged=True, pending=pending), NOTHING


def _merged(known: PodUpdate | None, update: PodUpdate) -> PodUpdate:
    """What to remember of an update, for queries and for replaying it (PW-89)."""
    pod, mirror, kill = update.pod, update.mirror, update.kill
    if known is not None:
        pod = known.pod if update.running is not None and known.pod is not None else pod
        mirror = known.mirror if mirror is None else mirror
        kill = known.kill if kill is None else kill
    return PodUpdate(_SYNC, pod, update.running, mirror, kill)


def _notify_stopped(waiters: tuple[Waiter, ...]) -> tuple[Action, ...]:
    return (NotifyWaiters(waiters, KillOutcome.STOPPED),) if waiters else NOTHING


# Comparison with the node's configuration


class KnownPod(msgspec.Struct, frozen=True):
    """The workers' view of a UID. An orphan is no longer in the node's configuration. A pod without config is known
    only from the runtime, or ended before it started."""

    stage: Stage
    is_orphan: bool
    has_config: bool
    is_static: bool


def review(state: PodState, now: float, *, is_orphan: bool) -> tuple[PodState | None, tuple[Action, ...]]:
    """The state after a comparison; None if the pod is forgotten, which requires that it has ended or never started.
    Until then its UID is not reused."""
    if state.is_finished:
        return (None if is_orphan or state.is_restart_requested else state), NOTHING
    if not is_orphan:
        return state, NOTHING
    if state.started_at is None and not state.is_seen_in_runtime:
        # Nothing was ever started, so there is nothing to stop (PW-154).
        return None, _notify_stopped(state.waiters)
    # An orphan gets no more updates: repeat the last one, unless a newer update is pending.
    after = replace(state, is_deleted=True, pending=state.pending or state.active)
    if state.terminating_at is None:
        after = replace(after, terminating_at=now, grace_seconds=_orphan_grace(state))
    return after, NOTHING if after.pending is None else _WAKE


def _orphan_grace(state: PodState) -> int:
    """Only stored: the step gets none and uses the pod's own grace period (PW-157)."""
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
