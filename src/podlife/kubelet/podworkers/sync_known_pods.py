"""Compares the node's configuration with the pods that the workers know. Pure.

A pod that left the configuration gets no more updates: the workers bring it to its end themselves. Only a pod that has
ended, or has never begun, is forgotten; until then its UID is not used again.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from podlife.kubelet.podworkers.grace_period import effective_grace
from podlife.kubelet.podworkers.state import NOTHING, WAKE, Action, KillAnswer, PodState, Stage
from podlife.kubelet.podworkers.updates import KillOutcome, is_static

_WAKE: tuple[Action, ...] = (WAKE,)


class KnownPod(msgspec.Struct, frozen=True):
    """What the workers have of a UID. One that is an orphan is not in the node's configuration any more; without
    config it is only known from the runtime, or has ended before it started."""

    stage: Stage
    is_orphan: bool
    has_config: bool
    is_static: bool


class ReviewedPod(msgspec.Struct, frozen=True):
    """`state` is None for a pod that is forgotten."""

    state: PodState | None
    actions: tuple[Action, ...] = NOTHING


def review(state: PodState, now: float, *, is_orphan: bool) -> ReviewedPod:
    """What becomes of a pod that is or is not wanted any more."""
    if state.is_finished:
        return ReviewedPod(None if is_orphan or state.is_restart_requested else state)
    if not is_orphan:
        return ReviewedPod(state)
    if state.started_at is None and not state.is_seen_in_runtime:
        # Nothing of it was ever started: there is nothing to stop, and nobody to wait for (PW-154).
        answer = (KillAnswer(state.waiters, KillOutcome.STOPPED),) if state.waiters else NOTHING
        return ReviewedPod(None, answer)
    return _towards_its_end(state, now)


def _towards_its_end(state: PodState, now: float) -> ReviewedPod:
    """Nobody else will send it an update: it sees its last one again, unless something newer waits already."""
    after = replace(state, is_deleted=True, pending=state.pending or state.active)
    if state.terminating_at is None:
        after = replace(after, terminating_at=now, grace_seconds=_orphan_grace(state))
    return ReviewedPod(after, NOTHING if after.pending is None else _WAKE)


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
