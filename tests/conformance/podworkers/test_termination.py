"""When a pod is to end, and why; and how long it has."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.pod import RunningPod
from podlife.kubelet.podworkers import KillOptions, Stage, UpdateType
from podlife.kubelet.podworkers.transitions import effective_grace
from tests.conformance.podworkers.world import CREATE, KILL, SYNC, UPDATE, World, pod, running


@running
async def test_a_runtime_only_pod_is_deleted_and_to_end_whatever_else_is_true(world: World) -> None:
    """PW-20"""
    await world.started(pod())
    world.tell(KILL, running=RunningPod("u"), kill=KillOptions(evict=True))
    state = world.state()
    assert (state.stage, state.is_deleted, state.is_evicted) == (Stage.TERMINATING, True, False)


@running
@pytest.mark.parametrize("type_", [CREATE, UPDATE, SYNC, KILL])
async def test_a_deletion_timestamp_ends_the_pod_whatever_the_update(world: World, type_: UpdateType) -> None:
    """PW-21"""
    await world.started(pod())
    world.tell(type_, pod(is_deleted=True), kill=KillOptions(evict=True))
    state = world.state()
    assert (state.stage, state.is_deleted, state.is_evicted) == (Stage.TERMINATING, True, False)


@running
@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_an_ended_phase_ends_the_pod_which_is_not_deleted_by_that(world: World, phase: str) -> None:
    """PW-22"""
    await world.started(pod())
    world.tell(UPDATE, pod(phase=phase), kill=KillOptions(evict=True))
    state = world.state()
    assert (state.stage, state.is_deleted, state.is_evicted) == (Stage.TERMINATING, False, False)


@running
async def test_a_kill_ends_the_pod_and_evicts_it_only_when_it_says_so(world: World) -> None:
    """PW-23"""
    await world.started(pod("plain"), pod("evicted"), pod("updated"))
    world.tell(KILL, pod("plain"))
    world.tell(KILL, pod("evicted"), kill=KillOptions(evict=True))
    world.tell(UPDATE, pod("updated"), kill=KillOptions(evict=True))
    assert not world.state("plain").is_evicted
    assert world.state("plain").stage is Stage.TERMINATING
    assert world.state("evicted").is_evicted
    assert not world.state("evicted").is_deleted
    assert world.state("updated").stage is Stage.SYNC


@running
async def test_why_a_pod_ends_is_noted_once(world: World) -> None:
    """PW-24"""
    await world.started(pod())
    with world.failing("terminating"):
        await world.told(KILL, pod())
        world.tell(UPDATE, pod(deletion=5))
        await world.told(KILL, pod(), kill=KillOptions(evict=True))
        assert not world.state().is_deleted
        assert not world.state().is_evicted
        world.workers.sync_known_pods(())
        assert world.state().is_deleted
    await world.settle()


@running
async def test_the_running_step_is_cancelled_when_the_pod_is_to_end_and_when_it_has_less_time(
    world: World,
) -> None:
    """PW-25"""
    world.hold("sync")
    gate = world.hold("terminating")
    await world.told(CREATE, pod())
    await world.told(KILL, pod())
    assert [call.step for call in world.steps.cancelled] == ["sync"]
    await world.told(KILL, pod())
    assert len(world.steps.cancelled) == 1, "nothing is new: the kill goes on"
    await world.told(KILL, pod(), kill=KillOptions(grace_seconds=5))
    assert [call.step for call in world.steps.cancelled] == ["sync", "terminating"]
    await world.open(gate)
    assert world.steps.of("u")[1:] == [("terminating", 30), ("terminating", 5), ("terminated", None)]


@running
async def test_a_sync_that_says_the_pod_has_ended_leads_to_its_end_without_any_update(world: World) -> None:
    """PW-26"""
    world.steps.terminal.add("u")
    gate = world.hold("terminating")
    await world.told(CREATE, pod())
    assert world.state().is_acknowledged
    assert world.state().stage is Stage.TERMINATING
    assert world.delay() <= 0
    await world.open(gate)
    assert world.steps.of("u") == [("sync", "create"), ("terminating", None), ("terminated", None)]
    assert world.state().is_finished


GRACES = [
    pytest.param(0, None, None, 30, 30, id="PW-41: what the pod asks for"),
    pytest.param(0, 5, None, 30, 5, id="PW-42: what the deletion gives"),
    pytest.param(0, 0, None, 30, 1, id="PW-44: a deletion with none"),
    pytest.param(0, 0, 30, None, 30, id="PW-46: zero counts as unset"),
    pytest.param(30, 60, None, None, 30, id="PW-47: never grows by a deletion"),
    pytest.param(30, None, 60, None, 30, id="PW-47: never grows by an override"),
    pytest.param(30, 0, 60, None, 30, id="PW-47: never grows by a zero that counts as unset"),
    pytest.param(30, None, 5, None, 5, id="PW-47: shortened"),
    pytest.param(5, None, None, 30, 5, id="PW-47: stays what it was"),
    pytest.param(0, None, None, None, 1, id="PW-48: nothing given"),
    pytest.param(0, None, None, 0, 1, id="PW-48: nothing asked for"),
    pytest.param(0, -3, None, -1, 1, id="PW-48: negative"),
    pytest.param(0, 20, 10, 30, 10, id="PW-40: the override is shorter"),
    pytest.param(0, 10, 20, 30, 10, id="PW-40: the deletion is shorter"),
    pytest.param(0, None, 40, 30, 40, id="PW-40: an override alone, longer than the pod asks for"),
    pytest.param(30, 20, 10, 5, 10, id="PW-40: both shorten what was stored"),
]


@pytest.mark.parametrize(("stored", "deletion", "override", "spec", "expected"), GRACES)
def test_grace(
    stored: int, deletion: int | None, override: int | None, spec: int | None, expected: int
) -> None:
    assert effective_grace(stored, deletion=deletion, override=override, spec=spec) == expected


@running
async def test_a_grace_is_shortened_only_if_there_was_one_that_differs(world: World) -> None:
    """PW-49"""
    await world.started(pod())
    gate = world.hold("terminating")
    await world.told(KILL, pod(), kill=KillOptions(grace_seconds=20))
    assert world.steps.cancelled == []
    for seconds, cancellations in ((20, 0), (25, 0), (10, 1), (10, 1)):
        await world.told(KILL, pod(), kill=KillOptions(grace_seconds=seconds))
        assert len(world.steps.cancelled) == cancellations
    await world.open(gate)


@running
async def test_the_step_is_told_the_grace_that_was_worked_out(world: World) -> None:
    """PW-50"""
    await world.started(pod("deleted"), pod("evicted"))
    world.tell(UPDATE, pod("deleted", deletion=15))
    world.tell(KILL, pod("evicted"), kill=KillOptions(evict=True))
    world.tell(KILL, running=RunningPod("runtime"))
    assert world.state("runtime").grace_seconds == 1
    await world.settle()
    assert world.steps.of("deleted")[0] == ("terminating", 15)
    assert world.steps.of("evicted")[0] == ("terminating", 30)


@running
async def test_a_step_that_has_not_begun_when_it_is_overtaken_never_does(world: World) -> None:
    """PW-25"""
    world.hold("sync")
    world.tell(CREATE, pod())
    # The workers have begun the step, its task has not run yet.
    await asyncio.sleep(0)
    assert world.workers.is_working("u")
    assert world.state().active is not None
    await world.told(KILL, pod())
    assert [step for step, _ in world.steps.of("u")] == ["terminating", "terminated"]


@running
async def test_a_step_is_told_once_that_it_is_overtaken(world: World) -> None:
    """PW-25"""
    await world.started(pod())
    gate = world.hold("terminating")
    world.steps.ignores_cancellation.add(("terminating", "u"))
    await world.told(KILL, pod())
    for seconds in (20, 10, 5):
        await world.told(KILL, pod(), kill=KillOptions(grace_seconds=seconds))
    assert len(world.steps.cancelled) == 1
    await world.open(gate)
    assert world.steps.of("u") == [("terminating", 30), ("terminated", None)]
