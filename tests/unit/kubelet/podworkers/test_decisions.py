"""The pure part: events in, states and actions out; a state that was given is never changed."""

from __future__ import annotations

from msgspec.structs import replace

from podlife.kubelet.podworkers import KillOptions, KillOutcome, PodState, PodUpdate, Stage
from podlife.kubelet.podworkers.state import KillAnswer, WorkerAction
from podlife.kubelet.podworkers.transitions import StepWork, accept, begin, end_before_start, succeed
from tests.conformance.podworkers.world import CREATE, KILL, SYNC, UPDATE, RunningPod, pod, static

State = PodState
Update = PodUpdate


def nobody(outcome: KillOutcome) -> None: ...


def started(**changes: object) -> State:
    active: Update = PodUpdate(SYNC, pod())
    state: State = PodState(0.0, started_at=1.0, active=active)
    return replace(state, **changes)


def test_the_first_update_wakes_the_pod_and_a_static_one_stands_in_line() -> None:
    update: Update = PodUpdate(CREATE, pod())
    assert accept(None, update, 3.0) == (PodState(3.0, pending=update), (WorkerAction.WAKE,))
    waiting: Update = PodUpdate(CREATE, static("s"))
    assert accept(None, waiting, 3.0)[1] == (WorkerAction.LINE_UP, WorkerAction.WAKE)


def test_what_nobody_should_know_stays_unknown() -> None:
    update: Update = PodUpdate(UPDATE, running=RunningPod("u"), kill=KillOptions(nobody))
    assert accept(None, update, 3.0) == (None, (KillAnswer((nobody,), KillOutcome.NOT_KILLED),))


def test_a_kill_wakes_the_pod_and_cancels_its_step() -> None:
    before = started()
    copy = replace(before)
    after, actions = accept(before, PodUpdate(KILL, pod(), kill=KillOptions(nobody)), 3.0)
    assert actions == (WorkerAction.WAKE, WorkerAction.CANCEL_STEP)
    assert after == replace(
        before,
        terminating_at=3.0,
        grace_seconds=30,
        waiters=(nobody,),
        pending=PodUpdate(KILL, pod(), kill=KillOptions(grace_seconds=30)),
    )
    assert before == copy


def test_an_update_that_is_thrown_away_keeps_nobody() -> None:
    """Those who wait are in the state alone: a pending update can be replaced without losing them."""
    after, _ = accept(started(), PodUpdate(KILL, pod(), kill=KillOptions(nobody)), 3.0)
    assert after is not None
    after, _ = accept(after, PodUpdate(UPDATE, pod()), 4.0)
    assert after.waiters == (nobody,)
    assert after.pending.kill == KillOptions(grace_seconds=30)


def test_a_sync_that_ends_the_pod_after_a_kill_came_leaves_the_time_of_the_kill() -> None:
    pending: Update = PodUpdate(KILL, pod(), kill=KillOptions(grace_seconds=5))
    state = started(terminating_at=3.0, grace_seconds=5, pending=pending)
    after, actions = succeed(state, StepWork(Stage.SYNC, PodUpdate(SYNC, pod())), 9.0, is_terminal=True)
    assert after == replace(state, is_acknowledged=True)
    assert actions == ()


def test_a_sync_that_does_not_end_the_pod_changes_nothing() -> None:
    state = started()
    assert succeed(state, StepWork(Stage.SYNC, PodUpdate(SYNC, pod())), 9.0) == (state, ())


def test_a_pod_that_has_stopped_tells_everybody_and_goes_on_to_its_last_step() -> None:
    state = started(terminating_at=3.0, waiters=(nobody, nobody), status_override=print, is_acknowledged=True)
    after, actions = succeed(state, StepWork(Stage.TERMINATING, PodUpdate(KILL, pod())), 9.0)
    assert (after.stage, after.waiters, after.status_override) == (Stage.TERMINATED, (), None)
    assert after.pending is state.active
    assert actions == (KillAnswer((nobody, nobody), KillOutcome.STOPPED),)


def test_a_finished_pod_keeps_no_update_that_came_meanwhile() -> None:
    state = started(terminating_at=3.0, terminated_at=4.0, pending=PodUpdate(SYNC, pod()))
    after, actions = succeed(state, StepWork(Stage.TERMINATED, PodUpdate(SYNC, pod())), 9.0)
    assert after == replace(state, is_finished=True, pending=None)
    assert actions == (WorkerAction.RELEASE_NAME,)


def test_a_step_works_at_the_stage_that_the_pod_has_when_it_begins() -> None:
    update: Update = PodUpdate(UPDATE, pod())
    for changes, stage in (
        ({}, Stage.SYNC),
        ({"terminating_at": 2.0}, Stage.TERMINATING),
        ({"terminating_at": 2.0, "terminated_at": 2.0}, Stage.TERMINATED),
    ):
        state = started(pending=update, **changes)
        after, work = begin(state, update, 5.0, is_start=False)
        assert (work.stage, work.update) == (stage, update)
        assert (after.pending, after.active, after.started_at) == (None, PodUpdate(SYNC, pod()), 1.0)


def test_a_pod_that_ends_before_it_starts_has_nothing_left_to_tell() -> None:
    state: State = PodState(
        0.0,
        terminating_at=1.0,
        waiters=(nobody,),
        status_override=print,
        pending=PodUpdate(KILL, static("s")),
    )
    after, actions = end_before_start(state, 2.0)
    assert after == PodState(0.0, terminating_at=1.0, terminated_at=2.0, is_finished=True)
    assert actions == (WorkerAction.RELEASE_NAME, KillAnswer((nobody,), KillOutcome.STOPPED))
