"""What an update does to what is known."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.pod import NodePod, RunningPod
from podlife.kubelet.podworkers import KillOptions, KillOutcome, Stage
from tests.conformance.podworkers.world import (
    CREATE,
    KILL,
    SYNC,
    UPDATE,
    World,
    observed,
    pod,
    running,
)


@running
async def test_a_runtime_only_pod_can_only_be_killed(world: World) -> None:
    """PW-10, PW-118"""
    for type_ in (CREATE, UPDATE, SYNC):
        world.tell(type_, running=RunningPod("u"), kill=world.waiting())
    await world.settle()
    assert len(world.workers) == 0
    assert world.steps.calls == []
    assert world.answers == [("", KillOutcome.NOT_KILLED)] * 3


@running
async def test_a_runtime_pod_that_comes_with_a_pod_is_dropped(world: World) -> None:
    """PW-11, PW-112"""
    await world.told(CREATE, pod(), running=RunningPod("u", name="other-name"))
    state, active = world.state(), world.active()
    assert (active.pod, active.running) == (pod(), None)
    assert state.stage is Stage.SYNC
    assert not state.is_seen_in_runtime
    assert world.steps.of("u") == [("sync", "create")]


@running
async def test_the_first_sight_of_a_pod_is_recorded_and_starts_it(world: World) -> None:
    """PW-12, PW-110"""
    await asyncio.sleep(5)
    world.tell(CREATE, pod())
    assert world.state().synced_at == asyncio.get_running_loop().time()
    assert world.state().started_at is None
    await world.settle()
    state = world.state()
    assert state.started_at is not None
    assert world.active().pod == pod()
    assert state.stage is Stage.SYNC


@running
@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_a_pod_that_ended_before_and_of_which_nothing_runs_has_only_its_last_step_left(
    world: World, phase: str
) -> None:
    """PW-13, PW-116"""
    world.cache.statuses["stopped"] = observed(stopped=1, not_ready=1)
    for uid in ("empty", "stopped"):
        world.tell(CREATE, pod(uid, phase=phase))
        state = world.state(uid)
        assert state.terminating_at == state.terminated_at == state.synced_at
        assert state.is_acknowledged
        assert not state.is_finished
        assert state.pending is not None
    await world.settle()
    for uid in ("empty", "stopped"):
        state = world.state(uid)
        assert world.steps.of(uid) == [("terminated", None)]
        assert state.is_finished
        assert state.started_at is not None
        assert state.grace_seconds == 0
        assert not state.is_restart_requested


@running
async def test_a_pod_that_ended_before_is_stopped_first_when_its_status_cannot_be_had(world: World) -> None:
    """PW-14, PW-115"""
    world.cache.errors["u"] = RuntimeError("no runtime")
    world.tell(CREATE, pod(phase="Succeeded"))
    assert world.state().terminating_at == world.state().synced_at
    assert world.state().terminated_at is None
    del world.cache.errors["u"]
    await world.settle()
    assert world.steps.of("u") == [("terminating", 30), ("terminated", None)]
    state = world.state()
    assert state.is_finished
    assert state.started_at is not None
    assert state.grace_seconds == 30


@running
@pytest.mark.parametrize(
    "seen", [observed(stopped=1, running=1), observed(ready=1)], ids=["container", "sandbox"]
)
async def test_a_pod_that_ended_by_its_phase_but_still_runs_is_stopped_first(
    world: World, seen: ObservedPod
) -> None:
    """PW-15"""
    world.cache.statuses["u"] = seen
    await world.told(CREATE, pod(phase="Failed"))
    assert world.steps.of("u") == [("terminating", 30), ("terminated", None)]


@running
async def test_a_create_for_a_pod_that_is_to_end_is_remembered_as_a_wish(world: World) -> None:
    """PW-16"""
    world.tell(CREATE, pod(phase="Failed"))
    assert not world.state().is_restart_requested
    await world.settle()
    for stage, held in ((Stage.TERMINATING, "terminating"), (Stage.TERMINATED, "terminated")):
        uid = held
        await world.started(pod(uid))
        gate = world.hold(held, uid)
        await world.told(KILL, pod(uid))
        world.tell(CREATE, pod(uid, version="2"))
        assert world.state(uid).stage is stage
        assert world.state(uid).is_restart_requested
        assert world.state(uid).pending is None
        await world.open(gate)
    world.tell(CREATE, pod("u"))
    assert world.state("u").is_finished
    assert world.state("u").is_restart_requested


@running
async def test_any_other_update_of_a_finished_pod_is_discarded_and_whoever_waits_is_answered(
    world: World,
) -> None:
    """PW-17"""
    await world.started(pod())
    await world.told(KILL, pod())
    before = world.state()
    for type_ in (UPDATE, SYNC, KILL):
        world.tell(type_, pod(deletion=1), kill=world.waiting(type_.value, evict=True))
    assert world.state() == before
    assert world.answers == [(what, KillOutcome.STOPPED) for what in ("update", "sync", "kill")]


@running
async def test_a_runtime_only_kill_of_a_pod_that_is_known_uses_the_pod(world: World) -> None:
    """PW-18"""
    world.tell(CREATE, pod("pending", version="1"))
    world.tell(KILL, running=RunningPod("pending"))
    await world.started(pod("active", version="2"))
    world.tell(KILL, running=RunningPod("active"))
    for uid, version in (("pending", "1"), ("active", "2")):
        pending = world.state(uid).pending
        if pending is not None:
            assert (pending.pod, pending.running) == (pod(uid, version=version), None)
        assert world.state(uid).is_seen_in_runtime
    await world.settle()
    assert world.steps.of("active") == [("terminating", 30), ("terminated", None)]
    assert world.state("pending").is_finished
    assert "terminating runtime" not in {call.step for call in world.steps.calls}


@running
async def test_a_runtime_only_kill_of_a_pod_that_is_not_known_stops_it_and_leaves_nothing(
    world: World,
) -> None:
    """PW-19, PW-117"""
    world.tell(KILL, running=RunningPod("u"))
    state = world.state()
    assert state.stage is Stage.TERMINATING
    assert state.is_deleted
    assert state.is_seen_in_runtime
    assert state.grace_seconds == 1
    assert world.pending().kill == KillOptions(grace_seconds=1)
    assert world.pending().pod is None
    await world.settle()
    assert world.steps.calls == [("terminating runtime", "u", None)]
    assert len(world.workers) == 0
    assert not world.workers.is_known_terminated("u")


@running
async def test_a_deleted_pod_ends_with_the_grace_of_its_deletion(world: World) -> None:
    """PW-113"""
    await world.started(pod())
    await world.told(UPDATE, pod(deletion=15))
    state = world.state()
    assert (state.is_finished, state.is_deleted, state.is_acknowledged) == (True, True, True)
    assert state.grace_seconds == 15


@running
async def test_an_evicted_pod_ends_with_its_own_grace(world: World) -> None:
    """PW-114"""
    await world.started(pod())
    await world.told(KILL, pod(), kill=KillOptions(evict=True))
    state = world.state()
    assert (state.is_finished, state.is_evicted, state.is_deleted) == (True, True, False)
    assert state.grace_seconds == 30
    assert world.active().kill == KillOptions(evict=True, grace_seconds=30)


@running
async def test_a_kill_is_never_forgotten_over_a_later_update(world: World) -> None:
    """PW-120"""
    for number in range(20):
        for type_ in (CREATE, KILL, UPDATE):
            world.tell(type_, pod(f"{number}"))
            if number % 2:
                await asyncio.sleep(0)
    await world.settle()
    end = [("terminating", 30), ("terminated", None)]
    for number in range(20):
        assert world.steps.of(f"{number}") in (end, [("sync", "create"), *end])


@running
@pytest.mark.parametrize("mirror", [None, pod("m", name="mirror")], ids=["alone", "mirrored"])
@pytest.mark.parametrize(
    "subject", [NodePod({"metadata": {"name": "", "uid": ""}}), pod()], ids=["empty", "full"]
)
async def test_a_sync_sees_exactly_what_it_was_told(
    world: World, subject: NodePod, mirror: NodePod | None
) -> None:
    """PW-121"""
    seen = world.cache.statuses[subject.metadata.uid] = observed(running=1)
    await world.told(UPDATE, subject, mirror=mirror)
    assert world.steps.seen == [(subject, mirror, seen)]


@running
async def test_an_update_about_no_pod_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="the kill update is about no pod"):
        world.tell(KILL)


# One worker per UID, one step at a time, the newest update wins


@running
async def test_steps_of_one_pod_follow_each_other_and_those_of_others_run_together(world: World) -> None:
    """PW-01"""
    gates = [world.hold("sync", uid) for uid in ("a", "b", "c")]
    for uid in ("a", "b", "c"):
        world.tell(CREATE, pod(uid))
    await world.settle()
    for uid in ("a", "b", "c"):
        world.tell(UPDATE, pod(uid))
    await world.settle()
    assert [call.uid for call in world.steps.calls] == ["a", "b", "c"]
    assert world.steps.most_at_once == 3
    for gate in gates:
        gate.set()
    await world.settle()
    assert [world.steps.of(uid) for uid in "abc"] == [[("sync", "create"), ("sync", "update")]] * 3


@running
async def test_quick_updates_are_coalesced_and_the_newest_is_always_seen_last(world: World) -> None:
    """PW-02"""
    for number in range(20):
        for version in range(number + 1):
            world.tell(UPDATE, pod(f"{number}", version=f"{version}"))
            if version % 7 == 3:
                await asyncio.sleep(0)
    await world.settle()
    for number in range(20):
        versions = [
            seen[0].metadata.annotations["version"]
            for seen in world.steps.seen
            if seen[0].metadata.uid == f"{number}"
        ]
        assert 1 <= len(versions) <= number + 1
        assert versions[-1] == f"{number}"


@running
async def test_a_pending_update_that_is_replaced_leaves_its_start_behind_if_it_is_the_older(
    world: World,
) -> None:
    """PW-03"""
    for older, newer, kept in ((1.0, 2.0, 1.0), (2.0, 1.0, 1.0), (1.0, None, 1.0), (None, 2.0, 2.0)):
        world.tell(UPDATE, pod(), asked_at=older)
        world.tell(UPDATE, pod(version="newer"), asked_at=newer)
        pending = world.pending()
        assert pending.asked_at == kept
        assert pending.pod == pod(version="newer")
        await world.settle()


@running
async def test_a_terminated_uid_does_nothing_more_until_it_is_forgotten(world: World) -> None:
    """PW-04"""
    await world.started(pod())
    await world.told(KILL, pod())
    world.steps.calls.clear()
    for type_ in (CREATE, UPDATE, SYNC, KILL):
        await world.told(type_, pod())
    assert world.steps.calls == []
    world.workers.sync_known_pods(())
    await world.told(CREATE, pod())
    assert world.steps.of("u") == [("sync", "create")]
