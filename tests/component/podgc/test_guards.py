"""Guards around a collector at work, under virtual time: what is held, what lifts it, and at which second it goes."""

from __future__ import annotations

import asyncio
from datetime import time
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from podlife.client import EVENTS, NAMESPACES
from podlife.events import Recorder
from podlife.podgc import Collector, Reason, Settings
from podlife.podgc.guards import controller_gate as guards_post
from podlife.podgc.namespace_annotations import FORCE_UNTIL
from podlife.podgc.plan import Victim
from podlife.podgc.policy.model import STOP, Guards, Policy, Rule, Window
from podlife.podgc.prometheus import GcMetrics
from podlife.wire import Request, Response
from tests.component.podgc.world import NODE, World, answering, in_cluster, in_world, now, running


def guarded(
    world: World, *, threshold: int = 1, recorder: Recorder | None = None, **guards: Any
) -> Collector:
    settings = Settings(threshold=threshold, guards=Guards(**guards))
    return Collector(world.client, settings, clock=world.clock, recorder=recorder)


async def ended(world: World, count: int, *, prefix: str = "p", namespace: str = "default") -> None:
    for number in range(count):
        await world.pod(f"{prefix}{number:03}", phase="Succeeded", namespace=namespace)


async def mark(world: World, namespace: str, name: str, text: str | None) -> None:
    await world.admin.patch(NAMESPACES, namespace, {"metadata": {"annotations": {name: text}}})


def deleted_at(world: World, moments: list[float]) -> None:
    """Note when the server is asked for each deletion."""

    async def note(request: Request) -> Response | None:
        moments.append(now())
        return None

    world.faults.put("DELETE", "/pods/", note)


async def told(world: World, reason: str) -> list[str]:
    page = await world.admin.list(EVENTS)
    return [event["message"] for event in page.items if event["reason"] == reason]


@in_cluster
async def test_no_more_go_in_any_minute_than_may_and_the_rest_goes_when_there_is_room(world: World) -> None:
    await ended(world, 26)
    moments: list[float] = []
    deleted_at(world, moments)
    async with running(guarded(world, per_minute=10)):
        await asyncio.sleep(59)
        assert len(moments) == 10
        await asyncio.sleep(62)
        assert [round(moment) for moment in moments] == [0] * 10 + [60] * 10 + [120] * 5
        for first, later in zip(moments, moments[10:], strict=False):
            assert later >= first + 60


@in_cluster
async def test_a_deletion_that_fails_leaves_its_place_in_the_minute_to_another(world: World) -> None:
    await ended(world, 4)
    world.faults.put("DELETE", "/pods/p000$", answering(403))
    async with running(guarded(world, per_minute=2)):
        await asyncio.sleep(30)
        assert await world.left() == ["p000", "p003"]


@in_cluster
async def test_no_more_go_in_a_pass_than_may(world: World) -> None:
    await ended(world, 12)
    async with running(guarded(world, per_pass=5)):
        await asyncio.sleep(19)
        assert len(await world.left()) == 7
        await asyncio.sleep(20)
        assert len(await world.left()) == 2
        await asyncio.sleep(20)
        assert await world.left() == ["p011"]


def shown(collector: Collector) -> CollectorRegistry:
    """Its numbers, as Prometheus reads them."""
    registry = CollectorRegistry()
    registry.register(GcMetrics(collector))
    return registry


async def lose_nodes(world: World) -> None:
    """Of twenty pods on five nodes, the twelve on three of them lose theirs."""
    for node in range(5):
        await world.node(f"node-{node}")
        await world.pods(*(f"p{node}-{number}" for number in range(4)), node=f"node-{node}")


@in_world
async def test_the_loss_of_most_nodes_takes_no_pod_until_a_person_forces_it(world: World) -> None:
    await lose_nodes(world)
    recorder = world.recorder()
    collector = guarded(world, share_of_cluster=0.5, share_at_least=2, recorder=recorder)
    async with running(collector), asyncio.TaskGroup() as group:
        events = group.create_task(recorder.run())
        await asyncio.sleep(5)
        for node in range(3):
            await world.delete_node(f"node-{node}")
            # Their quarantines end one after the other; the first must not go before the others are counted.
            await asyncio.sleep(3)
        await asyncio.sleep(300)
        assert len(await world.left()) == 20
        assert world.faults.sent("DELETE") == []
        read = shown(collector).get_sample_value
        assert read("podlife_gc_mass_stops_total") == 1
        assert read("podlife_gc_guard_holding", {"guard": "shareOfCluster", "namespace": ""}) == 1
        [message] = await told(world, "PodGCStopped")
        assert "a pass would take 12 of the 20 pods of the cluster" in message
        assert f"kubectl annotate namespace kube-system {FORCE_UNTIL}=2030-01-01T01:00:" in message

        await mark(world, "kube-system", FORCE_UNTIL, "2030-01-01T01:00:00Z")
        await asyncio.sleep(2)
        assert len(await world.left()) == 8
        assert collector.metrics.stops == set()
        await asyncio.sleep(60)
        labels = {"guard": "shareOfCluster", "namespace": ""}
        assert shown(collector).get_sample_value("podlife_gc_guard_holding", labels) is None
        events.cancel()


@in_world
async def test_a_stop_ends_by_itself_only_when_nobody_is_left_to_go(world: World) -> None:
    await lose_nodes(world)
    collector = guarded(world, share_of_cluster=0.5, share_at_least=2)
    async with running(collector):
        await asyncio.sleep(1)
        for node in range(3):
            await world.delete_node(f"node-{node}")
        await asyncio.sleep(60)
        await world.node("node-0")
        await world.node("node-1")
        await asyncio.sleep(60)
        # Four of twenty would be no mass, but it was one before.
        assert len(await world.left()) == 20
        await world.node("node-2")
        await asyncio.sleep(30)
        await world.delete_node("node-2")
        await asyncio.sleep(60)
        assert len(await world.left()) == 16


@in_cluster
async def test_a_mass_in_one_namespace_stops_it_and_no_other(world: World) -> None:
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await ended(world, 12)
    await ended(world, 3, prefix="q", namespace="other")
    async with running(guarded(world, share_of_namespace=0.5, share_at_least=5)) as _:
        await asyncio.sleep(30)
        # The youngest stays, as one may.
        assert await world.left() == [*(f"p{number:03}" for number in range(12)), "q002"]
        await mark(world, "default", FORCE_UNTIL, "2030-01-01T01:00:00Z")
        await asyncio.sleep(2)
        assert await world.left() == ["q002"]


@in_cluster
async def test_what_comes_one_by_one_stops_at_the_share_and_the_rest_stays(world: World) -> None:
    await world.pods(*(f"p{number:03}" for number in range(20)))
    collector = guarded(world, share_of_namespace=0.25, share_at_least=1)
    async with running(collector):
        await asyncio.sleep(1)
        for number in range(12):
            await world.plant(f"p{number:03}", status={"phase": "Failed"})
            await asyncio.sleep(1.5)
        await asyncio.sleep(100)
        assert len(await world.left()) == 15
        assert collector.metrics.stops == {"default"}


@in_cluster
async def test_outside_the_windows_nothing_goes_and_when_one_opens_all_do(world: World) -> None:
    await ended(world, 3)
    windows = (Window(start=time(0, 10), end=time(0, 20)),)
    moments: list[float] = []
    deleted_at(world, moments)
    collector = Collector(
        world.client,
        Settings(threshold=1, period_seconds=100_000, guards=Guards(windows=windows)),
        clock=world.clock,
    )
    async with running(collector):
        await asyncio.sleep(700)
        assert await world.left() == ["p002"]
        assert moments == [pytest.approx(600, abs=0.5)] * 2
        await asyncio.sleep(600)
        await world.pod("q", phase="Failed")
        await asyncio.sleep(3600)
        assert await world.left() == ["p002", "q"]


@in_cluster
async def test_a_stop_on_a_namespace_or_on_kube_system_holds_until_it_is_taken_off(world: World) -> None:
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await mark(world, "other", STOP, "an incident")
    await ended(world, 2, prefix="q", namespace="other")
    await ended(world, 3)
    async with running(guarded(world)):
        await asyncio.sleep(30)
        assert await world.left() == ["p002", "q000", "q001"]
        await mark(world, "kube-system", STOP, "everything waits")
        await mark(world, "other", STOP, None)
        await asyncio.sleep(30)
        assert await world.left() == ["p002", "q000", "q001"]
        await mark(world, "kube-system", STOP, None)
        await asyncio.sleep(1)
        assert await world.left() == ["p002"]


@in_cluster
async def test_observe_only_tells_of_each_pod_once_and_changes_nothing(world: World) -> None:
    await ended(world, 3)
    await world.pod("unscheduled", phase="Pending", node="", is_terminating=True)
    recorder = world.recorder()
    collector = guarded(world, is_observing=True, recorder=recorder)
    async with running(collector), asyncio.TaskGroup() as group:
        events = group.create_task(recorder.run())
        await asyncio.sleep(300)
        assert len(await world.left()) == 4
        assert world.faults.sent("DELETE") == world.faults.sent("PATCH") == []
        assert collector.metrics.observed == {
            ("default", Reason.TERMINATED): 2,
            ("default", Reason.UNSCHEDULED): 1,
        }
        labels = {"namespace": "default", "reason": "terminated"}
        assert shown(collector).get_sample_value("podlife_gc_observed_total", labels) == 2
        assert len(await told(world, "PodWouldBeCollected")) == 3
        events.cancel()


@in_world
async def test_a_force_that_cannot_be_read_forces_nothing(world: World) -> None:
    await world.node(NODE)
    await ended(world, 12)
    await mark(world, "default", FORCE_UNTIL, "tomorrow")
    async with running(guarded(world, share_of_namespace=0.1)):
        await asyncio.sleep(60)
        assert len(await world.left()) == 12


@in_cluster
async def test_a_pod_whose_archive_takes_longer_than_the_window_is_not_deleted_outside_it(
    world: World,
) -> None:
    await ended(world, 3)

    async def archive_slowly(victim: Victim) -> str:
        await asyncio.sleep(400 if victim.pod.metadata.name == "p000" else 1)
        return ""

    guards = Guards(windows=(Window(start=time(0), end=time(0, 5)),))
    settings = Settings(threshold=1, guards=guards)
    collector = Collector(world.client, settings, clock=world.clock, steps=[archive_slowly])
    async with running(collector):
        await asyncio.sleep(3600)
        assert await world.left() == ["p000", "p002"]


@in_cluster
async def test_other_guards_that_are_put_in_force_hold_at_once_and_know_what_went_before(
    world: World,
) -> None:
    await ended(world, 20)

    def policy(**guards: Any) -> Settings:
        return Settings(threshold=1, policy=Policy(guards=Guards(**guards)))

    collector = Collector(world.client, policy(is_observing=True), clock=world.clock)
    async with running(collector):
        await asyncio.sleep(30)
        assert len(await world.left()) == 20
        collector.put_in_force(policy(per_minute=5))
        await asyncio.sleep(5)
        assert len(await world.left()) == 15
        collector.put_in_force(policy(per_minute=8))
        await asyncio.sleep(5)
        # Five of the eight are gone already.
        assert len(await world.left()) == 12
        collector.put_in_force(policy(share_of_cluster=0.1))
        await asyncio.sleep(600)
        assert len(await world.left()) == 12
        collector.put_in_force(policy())
        await asyncio.sleep(5)
        assert await world.left() == ["p019"]


@in_cluster
async def test_observe_only_that_is_put_in_force_holds_whom_a_step_has_not_let_go_yet(world: World) -> None:
    await ended(world, 3)

    async def archive_slowly(victim: Victim) -> str:
        await asyncio.sleep(30)
        return ""

    def policy(**guards: Any) -> Settings:
        return Settings(threshold=1, policy=Policy(guards=Guards(**guards)))

    collector = Collector(world.client, policy(), clock=world.clock, steps=[archive_slowly])
    async with running(collector):
        await asyncio.sleep(5)
        collector.put_in_force(policy(is_observing=True))
        await asyncio.sleep(600)
        assert len(await world.left()) == 3


@in_cluster
async def test_the_more_are_stopped_the_more_rarely_they_are_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty at two a second: the next look comes ten seconds after the first, whatever happens meanwhile."""
    monkeypatch.setattr(guards_post, "_JUDGED_PER_SECOND", 2)
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await ended(world, 21)
    async with running(guarded(world, share_of_namespace=0.5)):
        await asyncio.sleep(3)
        await world.pod("stuck", namespace="other", node="", is_terminating=True)
        await asyncio.sleep(6)
        assert len(await world.left()) == 22
        await asyncio.sleep(2)
        assert len(await world.left()) == 21


@in_cluster
async def test_a_node_that_is_asked_for_takes_no_pods_place_in_the_minute(world: World) -> None:
    """As in a plan: what can go goes first, orphans after the server was asked for their node."""
    await ended(world, 1)
    for node in ("gone", "gone-too"):
        await world.pod(f"on-{node}", node=node)
    policy = Policy((Rule("ended", ttl_seconds=0),), guards=Guards(per_minute=1))
    guarded = world.collector(policy=policy, quarantine_seconds=0)
    plan = await guarded.plan_once()
    assert [victim.pod.metadata.name for victim in plan.victims] == ["p000"]
    async with running(guarded):
        await asyncio.sleep(30)
        assert await world.left() == ["on-gone", "on-gone-too"]
