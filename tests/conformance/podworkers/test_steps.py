"""What a step sees, and what comes of it."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.pod import RunningPod
from podlife.kubelet.podworkers import KillOptions, Stage
from podlife.testing import virtual_time
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
async def test_a_step_sees_what_the_runtime_said_after_the_last_one_ended(world: World) -> None:
    """PW-80"""
    gate = world.hold("sync")
    world.tell(CREATE, pod())
    await asyncio.sleep(3)
    await world.open(gate)
    ended = 3.001
    world.cache.gates["u"] = asyncio.Event()
    await world.told(KILL, pod())
    assert [asked for _, asked in world.cache.asked] == [None, pytest.approx(ended)]
    assert len(world.steps.calls) == 1, "it waits"
    await asyncio.sleep(2)
    world.cache.gates.pop("u").set()
    await world.settle()
    assert [step for step, _ in world.steps.of("u")] == ["sync", "terminating", "terminated"]
    assert world.cache.asked[2][1] == pytest.approx(ended + 2, abs=0.01)
    await world.told(KILL, running=RunningPod("orphan"))
    assert "orphan" not in {uid for uid, _ in world.cache.asked}


@running
@pytest.mark.parametrize("is_late", [False, True])
async def test_a_status_that_cannot_be_read_is_told_and_the_step_counts_as_failed(
    world: World, is_late: bool
) -> None:
    """PW-81"""
    await world.started(pod())
    stepped = world.workers._workers["u"].stepped_at
    await asyncio.sleep(1)
    world.cache.errors["u"] = RuntimeError("no runtime")
    if is_late:
        world.cache.gates["u"] = asyncio.Event()
        world.cache.gates["u"].set()
    await world.told(SYNC, pod())
    message = "error determining status: no runtime"
    assert world.recorder.events == [("running-pod", "Warning", "FailedSync", message)]
    assert world.steps.calls == []
    assert world.workers._workers["u"].stepped_at == stepped
    assert world.delay() == pytest.approx(10, abs=0.01)
    assert world.state().stage is Stage.SYNC


@running
async def test_the_step_is_chosen_by_the_stage(world: World) -> None:
    """PW-82"""

    def override(status: object) -> None: ...

    for type_ in (CREATE, UPDATE, SYNC):
        await world.told(type_, pod())
    world.tell(KILL, pod(), kill=KillOptions(status_override=override, grace_seconds=7))
    await world.told(KILL, running=RunningPod("orphan"))
    assert world.steps.of("u") == [
        ("sync", "create"),
        ("sync", "update"),
        ("sync", "sync"),
        ("terminating", 7),
        ("terminated", None),
    ]
    assert override in [seen[2] for seen in world.steps.seen if len(seen) == 3]
    assert world.steps.of("orphan") == [("terminating runtime", None)]


@running
async def test_an_end_is_acknowledged_when_its_step_begins_not_when_it_is_asked_for(world: World) -> None:
    """PW-83"""
    gate = world.hold("sync")
    world.steps.ignores_cancellation.add(("sync", "u"))
    await world.told(CREATE, pod())
    await world.told(KILL, pod())
    assert not world.workers.should_containers_be_terminating("u")
    acknowledged: list[bool] = []
    world.steps.on_call = lambda call: acknowledged.append(world.state().is_acknowledged)
    await world.open(gate)
    assert acknowledged == [True, True]


@running
async def test_a_step_that_succeeds_leads_to_the_next_at_once(world: World) -> None:
    """PW-84"""
    await world.started(static("s"))
    gate = world.hold("terminated", "s")
    await world.told(KILL, static("s"), kill=world.waiting("s"))
    assert world.state("s").is_terminated
    assert len(world.answers) == 1
    assert world.workers.static_names.holder("pod1_test1") == "s"
    await world.open(gate)
    assert world.state("s").is_finished
    assert not world.workers.is_working("s")
    assert world.workers.static_names.holder("pod1_test1") is None
    await world.told(KILL, running=RunningPod("r"))
    assert world.workers.state("r") is None


@running
@pytest.mark.parametrize("step", ["sync", "terminating", "terminated"])
async def test_a_step_that_fails_changes_nothing_and_is_tried_again(
    world: World, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """PW-85"""
    await world.started(pod(), pod("other"))
    with world.failing(step):
        world.tell(SYNC if step == "sync" else KILL, pod())
        await world.told(UPDATE, pod("other"))
        assert world.state().stage.value == step
        assert not world.state().is_finished
        assert world.delay() == pytest.approx(10, abs=0.01)
        assert not world.workers.is_working("u")
        assert world.steps.of("other") == [("sync", "update")], "it stands in nobody's way"
    assert f"pod u: {step} step failed" in caplog.text
    assert world.workers.metrics.failures == 1
    await world.told(SYNC, pod())
    assert world.steps.calls[-1].step in (step, "terminated")


@running
async def test_a_cancelled_step_is_expected_and_what_is_newer_runs_at_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """PW-86"""
    world.hold("sync")
    await world.told(CREATE, pod())
    with world.failing("terminating"):
        await world.told(KILL, pod())
    assert [step for step, _ in world.steps.of("u")] == ["sync", "terminating"]
    assert "sync step failed" not in caplog.text
    assert world.workers.metrics.failures == 1, "of the terminating step alone"


@running
async def test_a_step_that_was_cancelled_by_something_else_is_tried_again(world: World) -> None:
    """PW-86"""
    await world.started(pod())
    with world.failing("sync", error=asyncio.CancelledError()):
        await world.told(SYNC, pod())
    assert world.state().stage is Stage.SYNC
    assert world.delay() == pytest.approx(10, abs=0.01)


@running
async def test_what_a_sync_wants_done_after_it_is_done_after_its_end_was_noted(world: World) -> None:
    """PW-87"""
    noted: list[float | None] = []

    def after() -> None:
        noted.append(world.workers._workers["u"].stepped_at)
        raise RuntimeError("a callback that fails is nobody's end")

    world.steps.after["u"] = after
    await asyncio.sleep(2)
    await world.told(CREATE, pod())
    assert noted == [pytest.approx(2.001, abs=0.01)]
    assert world.delay() == pytest.approx(20, abs=0.01)


@running
async def test_after_a_cancellation_the_next_step_starts_afresh(world: World) -> None:
    """PW-88"""
    gate = world.hold("sync")
    world.steps.ignores_cancellation.add(("sync", "u"))
    terminating = world.hold("terminating")
    await world.told(CREATE, pod())
    await world.told(KILL, pod())
    await world.open(gate)
    assert world.steps.calls[-1].step == "terminating"
    assert [call.step for call in world.steps.cancelled] == ["sync"]
    await world.open(terminating)
    assert world.state().is_finished


@running
async def test_a_kill_from_inside_a_step_reaches_no_step_but_that(world: World) -> None:
    """PW-88"""

    def kill(call: object) -> None:
        world.steps.on_call = lambda call: None
        world.tell(KILL, pod())

    world.steps.on_call = kill
    world.hold("terminating").set()
    await world.told(CREATE, pod())
    assert [step for step, _ in world.steps.of("u")] == ["sync", "terminating", "terminated"]
    assert world.steps.cancelled == []


@running
async def test_what_is_remembered_of_updates_is_merged(world: World) -> None:
    """PW-89"""
    mirror = pod("m", name="mirror")
    await world.told(CREATE, pod(version="1"), mirror=mirror, asked_at=0.0)
    await world.told(UPDATE, pod(version="2"))
    active = world.active()
    assert (active.pod, active.mirror, active.kill) == (pod(version="2"), mirror, None)
    assert (active.type, active.asked_at) == (SYNC, None)
    with world.failing("terminating"):
        kill = world.waiting("u", evict=True, status_override=lambda status: None)
        await world.told(KILL, pod(version="3"), kill=kill)
        active = world.active()
        assert active.kill == KillOptions(evict=True, grace_seconds=30)
        await world.told(KILL, running=RunningPod("u"))
        active = world.active()
        assert active.pod == pod(version="3")
        assert active.kill == KillOptions(grace_seconds=30)


@virtual_time
async def test_workers_that_end_stop_their_steps_and_leave_nothing(world: World) -> None:
    async with world:
        world.hold("sync")
        world.tell(CREATE, pod())
        world.cache.gates["slow"] = asyncio.Event()
        await world.told(CREATE, pod("slow"))
        assert len(asyncio.all_tasks()) == 4, "the test, the workers and two steps"
    assert [call.step for call in world.steps.cancelled] == ["sync"]
    assert sum(world.steps.running.values()) == 0
    assert len(world.workers.retries) == 0, "nothing is tried again"


@running
@pytest.mark.parametrize("step", ["terminating", "sync"])
async def test_the_next_step_sees_an_update_that_came_while_the_last_one_ran(world: World, step: str) -> None:
    """PW-84, PW-26: the transition of its own queues what the step saw, unless something newer waits."""
    if step == "terminating":
        await world.started(pod(version="1"))
    else:
        world.steps.terminal.add("u")
    gate = world.hold(step)
    await world.told(KILL if step == "terminating" else CREATE, pod(version="1"))
    await world.told(UPDATE, pod(version="2"))
    await world.open(gate)
    assert [call.step for call in world.steps.calls][-1] == "terminated"
    seen = [each[0].metadata.annotations["version"] for each in world.steps.seen]
    assert seen == (["1", "2"] if step == "terminating" else ["1", "2", "2"])
