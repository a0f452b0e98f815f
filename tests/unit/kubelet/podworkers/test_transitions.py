"""Transitions that no rule names: what comes of a step that was overtaken, and graces of any history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podlife.kubelet.podworkers import KillOptions, PodState, PodUpdate, Stage
from podlife.kubelet.podworkers.state import WorkerAction
from podlife.kubelet.podworkers.transitions import StepWork, effective_grace, succeed
from tests.conformance.podworkers.world import KILL, SYNC, pod


def started(**changes: object) -> PodState:
    return replace(PodState(0.0, started_at=1.0, active=PodUpdate(SYNC, pod())), **changes)


def test_a_sync_that_ends_the_pod_after_a_kill_came_leaves_the_time_of_the_kill() -> None:
    pending = PodUpdate(KILL, pod(), kill=KillOptions(grace_seconds=5))
    state = started(terminating_at=3.0, grace_seconds=5, pending=pending)
    after, actions = succeed(state, StepWork(Stage.SYNC, PodUpdate(SYNC, pod())), 9.0, is_terminal=True)
    assert after == replace(state, is_acknowledged=True)
    assert actions == ()


def test_a_finished_pod_keeps_no_update_that_came_meanwhile() -> None:
    state = started(terminating_at=3.0, terminated_at=4.0, pending=PodUpdate(SYNC, pod()))
    after, actions = succeed(state, StepWork(Stage.TERMINATED, PodUpdate(SYNC, pod())), 9.0)
    assert after == replace(state, is_finished=True, pending=None)
    assert actions == (WorkerAction.RELEASE_NAME,)


# The grace period: at least a second, and it never grows


seconds = st.none() | st.integers(-5, 100)


@given(st.lists(st.tuples(seconds, seconds, seconds), min_size=1))
def test_a_grace_that_was_given_once_only_becomes_shorter(
    kills: list[tuple[int | None, int | None, int | None]],
) -> None:
    stored = 0
    for deletion, override, spec in kills:
        grace = effective_grace(stored, deletion=deletion, override=override, spec=spec)
        assert grace >= 1
        assert stored == 0 or grace <= stored
        stored = grace
