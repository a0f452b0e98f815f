"""A pod that somebody wants to keep: it stays, and costs no other its life; a policy may say for how long at most."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from podlife.api.codec import format_time
from podlife.client import PODS
from podlife.podgc import Policy, Settings
from podlife.podgc.finalizers.remover import FinalizerRemover
from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.policy.model import Protection, Rule
from tests.component.podgc.world import GONE_NODE, START, World, in_cluster, in_world, running


async def keep(world: World, name: str, until: str) -> None:
    await world.admin.patch(PODS, name, {"metadata": {"annotations": {KEEP_UNTIL: until}}}, "default")


async def build(world: World) -> None:
    await world.node()
    await world.pods("oldest", "old", "young", phase="Succeeded")
    await world.pod("orphan", node=GONE_NODE)
    await world.pod("unscheduled", phase="Pending", node="", is_terminating=True)


@in_world
@pytest.mark.parametrize("until", ["2099-01-01T00:00:00Z", "a while"])
async def test_a_kept_pod_is_nobodys_victim_and_none_goes_in_its_place(world: World, until: str) -> None:
    await build(world)
    for name in ("oldest", "orphan", "unscheduled"):
        await keep(world, name, until)
    plan = await world.collector(threshold=1).plan_once()
    assert [victim.pod.metadata.name for victim in plan.victims] == ["old"]
    assert plan.later == ()
    async with running(world.collector(threshold=1)):
        await asyncio.sleep(300)
        assert await world.left() == ["oldest", "orphan", "unscheduled", "young"]


@in_world
async def test_a_kept_pod_goes_when_its_time_is_over_or_its_annotation_is_gone(world: World) -> None:
    await build(world)
    await keep(world, "oldest", format_time(START + timedelta(minutes=5)))
    await keep(world, "orphan", "2099-01-01T00:00:00Z")
    async with running(world.collector(threshold=1)):
        await asyncio.sleep(290)
        assert await world.left() == ["oldest", "orphan", "young"]
        await asyncio.sleep(40)
        assert await world.left() == ["orphan", "young"]
        patch = {"metadata": {"annotations": {KEEP_UNTIL: None}}}
        await world.admin.patch(PODS, "orphan", patch, "default")
        await asyncio.sleep(60)
        assert await world.left() == ["young"]


@in_cluster
@pytest.mark.parametrize("until", ["9999-12-31T23:59:59Z", "for ever"])
async def test_a_policy_bounds_how_long_an_annotation_keeps_a_pod_after_its_end(
    world: World, until: str
) -> None:
    finished = [{"type": "Ready", "status": "False", "lastTransitionTime": format_time(START)}]
    await world.pod("kept", phase="Succeeded", conditions=finished)
    await keep(world, "kept", until)
    rule = Rule("all", ttl_seconds=0)
    bounded = Policy((rule,), Protection(max_keep_until_seconds=3600))
    plan = await world.collector(policy=bounded).plan_once()
    assert plan.victims == ()
    async with running(world.collector(policy=bounded)):
        await asyncio.sleep(3590)
        assert await world.left() == ["kept"]
        await asyncio.sleep(20)
        assert await world.left() == []


@in_cluster
async def test_a_policy_may_leave_the_annotation_unheeded(world: World) -> None:
    await world.pod("kept", phase="Succeeded")
    await keep(world, "kept", "9999-12-31T23:59:59Z")
    policy = Policy((Rule("all", ttl_seconds=0),))
    await world.collector(policy=policy).sweep_once()
    assert await world.left() == ["kept"]
    heedless = replace(policy, protection=Protection(max_keep_until_seconds=0))
    await world.collector(policy=heedless).sweep_once()
    assert await world.left() == []


@in_world
async def test_the_bound_holds_where_finalizers_are_taken_off_too(world: World) -> None:
    annotated = {
        "metadata": {"namespace": "default", "name": "p", "annotations": {KEEP_UNTIL: "9999-12-31T23:59:59Z"}}
    }

    def is_kept(most_seconds: float | None) -> bool:
        settings = Settings(policy=Policy(protection=Protection(max_keep_until_seconds=most_seconds)))
        remover = FinalizerRemover(world.client, world.clock, frozenset(), lambda: settings)
        return bool(remover.protection_of(annotated))

    assert is_kept(None)
    assert not is_kept(0.0)
