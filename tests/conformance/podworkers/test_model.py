"""One worker per UID, one step at a time, the newest update wins."""

from __future__ import annotations

import asyncio

from tests.conformance.podworkers.world import CREATE, KILL, SYNC, UPDATE, World, pod, running


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
        pending = world.state().pending
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
