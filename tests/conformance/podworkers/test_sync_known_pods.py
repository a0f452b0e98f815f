"""The configuration is compared with what is known."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.kubelet.pod import RunningPod
from podlife.kubelet.podworkers import KnownPod, PodState, PodUpdate, Stage
from podlife.kubelet.podworkers.state import WorkerAction
from podlife.kubelet.podworkers.transitions import review
from tests.conformance.podworkers.world import (
    CREATE,
    KILL,
    SYNC,
    UPDATE,
    World,
    pod,
    running,
    static,
)


@running
async def test_everything_that_remains_is_told_with_its_stage_and_where_it_is_from(world: World) -> None:
    """PW-150"""
    assert not world.workers.is_finished("nobody")
    await world.started(pod("active"), static("static"))
    world.hold("terminating runtime", "runtime")
    await world.told(KILL, running=RunningPod("runtime"))
    world.tell(CREATE, static("waits"))
    known = world.workers.sync_known_pods({"active", "static", "waits"})
    assert known == {
        "active": KnownPod(Stage.SYNC, False, True, False),
        "static": KnownPod(Stage.SYNC, False, True, True),
        "runtime": KnownPod(Stage.TERMINATING, True, False, False),
        "waits": KnownPod(Stage.SYNC, False, True, True),
    }
    assert world.workers.is_finished("nobody")


@pytest.mark.parametrize(
    ("is_orphan", "is_restart_requested", "is_kept"),
    [
        pytest.param(True, False, False, id="PW-151: orphan"),
        pytest.param(False, True, False, id="PW-151: wished back"),
        pytest.param(True, True, False, id="PW-151: both"),
        pytest.param(False, False, True, id="PW-152: desired"),
    ],
)
def test_a_finished_pod_is_kept_only_as_long_as_it_is_wanted_as_it_is(
    is_orphan: bool, is_restart_requested: bool, is_kept: bool
) -> None:
    state = PodState(
        0.0,
        started_at=0.0,
        terminating_at=1.0,
        terminated_at=1.0,
        is_finished=True,
        is_restart_requested=is_restart_requested,
    )
    after, _ = review(state, 2.0, is_orphan=is_orphan)
    assert (after is state) is is_kept


@running
async def test_a_finished_pod_that_is_desired_is_told_as_terminated(world: World) -> None:
    """PW-152"""
    await world.started(pod())
    await world.told(KILL, pod())
    assert world.workers.sync_known_pods({"u"}) == {"u": KnownPod(Stage.TERMINATED, False, True, False)}


@pytest.mark.parametrize("is_restart_requested", [False, True])
def test_a_pod_that_is_desired_and_not_finished_is_left_alone(is_restart_requested: bool) -> None:
    """PW-153"""
    state = PodState(0.0, terminating_at=1.0, is_restart_requested=is_restart_requested)
    after, actions = review(state, 2.0, is_orphan=False)
    assert after is state
    assert actions == ()


@running
async def test_an_orphan_that_never_started_is_forgotten_without_any_step(world: World) -> None:
    """PW-154"""
    await world.started(static("1"))
    world.tell(CREATE, static("2"))
    world.tell(CREATE, pod("3"))
    assert set(world.workers.sync_known_pods({"1"})) == {"1"}
    await world.settle()
    assert world.steps.calls == []
    assert len(world.workers) == 1


@running
async def test_an_orphan_that_runs_is_ended_with_its_grace_stored_and_none_told(world: World) -> None:
    """PW-155, PW-157"""
    await world.started(pod(grace=12))
    world.cache.asked.clear()
    assert world.workers.sync_known_pods(()) == {"u": KnownPod(Stage.TERMINATING, True, True, False)}
    state = world.state()
    assert state.is_deleted
    assert state.grace_seconds == 12
    assert state.pending is state.active
    await world.settle()
    assert world.steps.of("u") == [("terminating", None), ("terminated", None)]


@running
async def test_the_running_sync_of_an_orphan_is_not_cancelled(world: World) -> None:
    """PW-158"""
    gate = world.hold("sync")
    await world.told(CREATE, pod())
    world.workers.sync_known_pods(())
    await world.settle()
    assert world.steps.cancelled == []
    await world.open(gate)
    assert [step for step, _ in world.steps.of("u")] == ["sync", "terminating", "terminated"]


@running
@pytest.mark.parametrize("step", ["terminating", "terminated"])
async def test_an_orphan_that_ends_is_driven_by_the_workers_alone(world: World, step: str) -> None:
    """PW-156"""
    await world.started(pod())
    with world.failing(step):
        await world.told(KILL, pod())
        world.steps.calls.clear()
        for _ in range(3):
            world.workers.sync_known_pods(())
            assert world.state().is_deleted
            await world.settle()
        assert [step for step, _ in world.steps.of("u")] == [step] * 3
    world.workers.sync_known_pods(())
    await world.settle()
    assert world.state().is_finished


@running
async def test_of_twenty_pods_those_that_are_killed_end_and_only_wanted_ones_are_left(world: World) -> None:
    """PW-159, PW-160, PW-161"""
    await world.started(*(pod(f"{number}") for number in range(20)))
    workers = world.workers
    for number in range(20):
        if number not in (2, 14):
            world.tell(KILL, pod(f"{number}", deletion=1 if number % 2 == 0 else None))
    await world.settle()
    for uid in ("0", "1"):
        assert workers.should_containers_be_terminating(uid)
        assert not workers.could_have_running_containers(uid)
    assert workers.should_content_be_removed("0")
    assert not workers.should_content_be_removed("1")
    assert not workers.is_termination_requested("2")
    assert workers.could_have_running_containers("2")

    assert set(workers.sync_known_pods({"2", "14"})) == {"2", "14"}

    assert len(workers.sync_known_pods(())) == 2
    await world.settle()
    assert [workers.is_finished(uid) for uid in ("2", "14")] == [True, True]
    assert not any(workers.is_working(uid) for uid in workers)
    world.steps.calls.clear()
    await world.told(KILL, pod("2"))
    assert world.steps.calls == []
    assert len(workers) == 2
    assert workers.sync_known_pods(()) == {}
    assert len(workers) == 0


ACTIVE = PodUpdate(SYNC, pod(version="active"))
PENDING = PodUpdate(UPDATE, pod(version="pending"))
TERMINATING: dict[str, Any] = {"terminating_at": 1.0}
TERMINATED: dict[str, Any] = {"terminating_at": 1.0, "terminated_at": 1.0}


@pytest.mark.parametrize(
    ("state", "is_orphan", "is_kept", "pending"),
    [
        (PodState(0.0, started_at=0.0, is_finished=True, **TERMINATED), True, False, None),
        (PodState(0.0, pending=PENDING), False, True, PENDING),
        (PodState(0.0), False, True, None),
        (PodState(0.0), True, False, None),
        (PodState(0.0, started_at=0.0), True, True, None),
        (PodState(0.0, started_at=0.0, **TERMINATING), True, True, None),
        (PodState(0.0, started_at=0.0, active=ACTIVE, **TERMINATING), True, True, ACTIVE),
        (PodState(0.0, started_at=0.0, pending=PENDING, active=ACTIVE, **TERMINATING), True, True, PENDING),
        (PodState(0.0, started_at=0.0, **TERMINATED), True, True, None),
        (PodState(0.0, started_at=0.0, active=ACTIVE, **TERMINATED), True, True, ACTIVE),
        (PodState(0.0, started_at=0.0, pending=PENDING, active=ACTIVE, **TERMINATED), True, True, PENDING),
    ],
    ids=[
        "finished",
        "waits for its name, desired",
        "not started, desired",
        "not started, orphan",
        "started, orphan",
        "terminating, never active",
        "terminating",
        "terminating, pending",
        "terminated, never active",
        "terminated",
        "terminated, pending",
    ],
)
def test_what_becomes_of_a_pod_in_each_state(
    state: PodState, is_orphan: bool, is_kept: bool, pending: PodUpdate | None
) -> None:
    """PW-162"""
    after, actions = review(state, 2.0, is_orphan=is_orphan)
    assert (after is not None) is is_kept
    if after is not None:
        assert after.pending is pending
        assert after.is_deleted is is_orphan
        assert (WorkerAction.WAKE in actions) is (is_orphan and pending is not None)
