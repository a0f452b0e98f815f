"""The collector at work on our API server, under virtual time: what happens, and at which second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from podlife.api.codec import Object
from podlife.client import EVENTS, NODES, PODS, REPLICA_SETS
from podlife.errors import UnreachableError
from podlife.podgc import Collector, Reason, Settings
from podlife.podgc.policy import Policy
from podlife.podgc.policy.model import Rule, Selector
from podlife.testing import Cluster, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.podgc.world import (
    GONE_NODE,
    NODE,
    World,
    answering,
    in_cluster,
    in_world,
    now,
    running,
)


async def eventually(condition: Callable[[], Awaitable[bool]], *, seconds: float = 600) -> float:
    """Wait, in steps of virtual time, until it holds; says at which second it did."""
    deadline = now() + seconds
    while not await condition():
        assert now() < deadline, "it never came"
        await asyncio.sleep(0.05)
    return now()


@in_cluster
async def test_a_pod_over_the_threshold_is_deleted_at_once_when_the_event_comes(world: World) -> None:
    await world.pods("a", "b", phase="Succeeded")
    async with running(world.collector(threshold=2, period_seconds=1000)):
        await asyncio.sleep(5)
        assert await world.left() == ["a", "b"]
        await world.pod("c", phase="Failed")
        took = await eventually(lambda: world.is_gone("a")) - 5
        assert took < 0.1
        assert await world.left() == ["b", "c"]


@in_cluster
async def test_pods_of_a_node_that_returns_within_quarantine_are_kept(world: World) -> None:
    await world.pod("a")
    async with running(world.collector()):
        await asyncio.sleep(1)
        await world.delete_node(NODE)
        await asyncio.sleep(30)
        await world.node()
        await asyncio.sleep(300)
        assert await world.left() == ["a"]
        assert world.faults.sent("GET", f"nodes/{NODE}") == []


@in_world
async def test_a_404_that_does_not_name_the_node_says_nothing_of_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """GC-53: a proxy that knows no such page answers so for every node."""
    await world.pod("a", node=GONE_NODE)
    world.faults.put("GET", f"/nodes/{GONE_NODE}$", answering(404))
    collector = world.collector()
    async with running(collector):
        await asyncio.sleep(200)
        assert await world.left() == ["a"]
        assert collector.metrics.node_checks["gone"] == 0
        assert f"cannot get node {GONE_NODE}, keeping its pods" in caplog.text
        world.faults.clear()
        await eventually(lambda: world.is_gone("a"), seconds=60)


@in_cluster
async def test_a_pod_created_again_under_its_name_between_decision_and_deletion_lives(world: World) -> None:
    await world.pods("a", "b", phase="Succeeded")

    async def be_faster(request: Request) -> None:
        world.faults.clear()
        await world.replace("a", phase="Running")

    world.faults.put("DELETE", "/pods/a$", be_faster)
    collector = world.collector(threshold=1)
    async with running(collector):
        await asyncio.sleep(60)
        assert await world.left() == ["a", "b"]
        assert not collector.metrics.deleted
        assert not collector.metrics.errors


@in_cluster
async def test_a_pod_that_fails_backs_off_by_itself_while_others_go(world: World) -> None:
    await world.pods("a", "b", "c", phase="Succeeded")
    world.faults.put("DELETE", "/pods/a$", answering(403))
    collector = world.collector(threshold=1)
    async with running(collector):
        await asyncio.sleep(60)
        assert await world.left() == ["a", "c"]
        # At 0, 1, 3, 7, 15 and 31 seconds.
        assert len(world.faults.sent("DELETE", "/pods/a")) == 6
        assert collector.metrics.errors["default", Reason.TERMINATED] == 6
        world.faults.clear()
        await asyncio.sleep(10)
        assert await world.left() == ["c"]


@in_cluster
async def test_nothing_is_collected_while_a_watch_is_silent(world: World) -> None:
    await world.pod("a", phase="Succeeded")
    collector = world.collector(threshold=1)
    async with running(collector):
        await asyncio.sleep(1)
        assert collector.is_fit

        async def stall(request: Request) -> None:
            await asyncio.sleep(3600)

        world.faults.put("GET", "/api/v1/nodes$", stall)
        # Longer than any watch may be silent, and than the server lets one live.
        await asyncio.sleep(1200)
        assert not collector.is_fit
        await world.pod("b", phase="Succeeded")
        await asyncio.sleep(30)
        assert await world.left() == ["a", "b"]
        world.faults.clear()
        await eventually(lambda: world.is_gone("a"), seconds=3700)


@in_world
async def test_a_pod_bound_to_a_missing_node_after_the_look_waits_for_the_next(world: World) -> None:
    await world.pod("a", node=GONE_NODE, finalizers=("example.com/hold",))
    async with running(world.collector()):
        await asyncio.sleep(45)
        assert (await world.get("a"))["metadata"]["deletionGracePeriodSeconds"] == 0
        await world.pod("b", node=GONE_NODE)
        came_at = now()
        assert await eventually(lambda: world.is_gone("b")) - came_at == pytest.approx(40, abs=1)


# Pods that the collector itself has marked Failed do not count as terminated: nobody dies in their stead


ENDED = ["ended-0", "ended-1", "ended-2"]


async def build(world: World) -> None:
    await world.node()
    await world.pods(*ENDED, phase="Failed")
    await world.pods(*(f"orphan-{number}" for number in range(30)), node=GONE_NODE)


async def take_long(_: Request) -> None:
    await asyncio.sleep(3)


@in_world
async def test_with_the_threshold_met_marking_orphans_costs_no_terminated_pod(world: World) -> None:
    """GC-11, GC-54"""
    await build(world)
    world.faults.put("DELETE", "orphan-", take_long)  # between its marking and its end others look
    async with running(world.collector(threshold=3, period_seconds=1)):
        await asyncio.sleep(120)
    assert await world.left() == ENDED


@in_world
async def test_a_pod_that_was_marked_and_whose_node_came_back_counts_as_terminated(world: World) -> None:
    """GC-11"""
    await build(world)

    async def fail(_: Request) -> Response:
        await world.node(GONE_NODE)
        world.faults.clear()
        return Response(500, b"{}")

    world.faults.put("DELETE", "orphan-7", fail)
    async with running(world.collector(threshold=3, period_seconds=1)):
        await asyncio.sleep(120)
    left = await world.left()
    phases = {name: (await world.get(name))["status"]["phase"] for name in left}
    assert list(phases.values()).count("Failed") == 3


# Who deleted my pod, and why: an Event on the pod's owner, or on its namespace


REPLICA_SET: Object = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


async def collect_and_tell(world: World, settings: Settings) -> list[Object]:
    recorder = world.recorder()
    collector = Collector(world.client, settings, clock=world.clock, recorder=recorder)
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(recorder.run())
        async with running(collector):
            await asyncio.sleep(5)
        assert await recorder.flush(seconds=5)
        sending.cancel()
    page = await world.admin.list(EVENTS, "default")
    return page.items


@in_cluster
async def test_the_owner_of_a_collected_pod_is_told(world: World) -> None:
    owner = await world.admin.create(REPLICA_SETS, REPLICA_SET, "default")
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    await world.pods("web-1", "web-2", phase="Failed", owner=reference)
    [event] = await collect_and_tell(world, Settings(threshold=1))
    about = event["involvedObject"]
    assert (about["kind"], about["name"], about["uid"]) == ("ReplicaSet", "web", owner["metadata"]["uid"])
    assert event["reason"] == "PodGarbageCollected"
    assert event["message"] == (
        "podlife-gc deleted pod web-1 (terminated): 2 terminated pods, 1 may stay; the oldest go first"
    )
    assert event["source"]["component"] == "podlife-gc"


@in_world
async def test_the_namespace_of_a_pod_without_an_owner_is_told_with_what_holds_it(world: World) -> None:
    await world.pod("a", node="", is_terminating=True, finalizers=("example.com/hold",))
    [event] = await collect_and_tell(world, Settings())
    about = event["involvedObject"]
    assert (about["kind"], about["name"]) == ("Namespace", "default")
    assert event["message"].endswith("was never scheduled; held by example.com/hold")


@in_cluster
async def test_the_rule_of_the_policy_is_named_and_upstreams_is_the_reason_alone(world: World) -> None:
    policy = Policy((Rule("brief", Selector(phases=("Failed",)), ttl_seconds=0),))
    await world.pod("a", phase="Failed")
    await world.pod("b", node="", is_terminating=True)
    events = await collect_and_tell(world, Settings(policy=policy))
    told = sorted(event["message"].partition(":")[0] for event in events)
    assert told == [
        "podlife-gc deleted pod a (expired, rule brief)",
        "podlife-gc deleted pod b (unscheduled)",
    ]


# A node that comes back while the collector's watch is down: its pods stay, though the server said that it is gone


COLLECTOR = "pod-garbage-collector-controller"
POD = {
    "metadata": {"name": "web"},
    "spec": {"nodeName": "away", "containers": [{"name": "main", "image": "app"}]},
}


class SlowNodes:
    """The collector's way to the server. The answer that there is no such node is on its way while `meanwhile` happens;
    from then on the watch of nodes can be begun, and says nothing before it is released."""

    def __init__(self, cluster: Cluster, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self.faults = cluster.controllers.faults(COLLECTOR)
        self.is_down = False
        self.is_held = False
        self.released = asyncio.Event()
        self.answers = 0
        self._meanwhile = meanwhile

    async def __call__(self, request: Request, onwards: Handler) -> Response:
        is_watch = request.path == "/api/v1/nodes" and "watch" in request.query
        if is_watch and self.is_down:
            raise UnreachableError("the server is down")
        answer = await onwards(request)
        if is_watch and self.is_held:
            assert isinstance(answer.body, AsyncIterator)
            answer.body = self._hold(answer.body)
        if request.path == "/api/v1/nodes/away" and answer.status == 404:
            self.answers += 1
            await self._meanwhile()
        return answer

    async def _hold(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        await self.released.wait()
        async for piece in body:
            yield piece


async def is_there(cluster: Cluster) -> bool:
    return [pod["metadata"]["name"] for pod in (await cluster.client.list(PODS, "default")).items] == ["web"]


@virtual_time
async def test_a_404_that_comes_while_the_watch_is_down_makes_no_orphan() -> None:
    async with Cluster(nodes=1, controllers=(COLLECTOR,)) as cluster:

        async def go_down_and_come_back() -> None:
            slow.is_down = True
            slow.faults.break_watches()
            await cluster.client.create(NODES, {"metadata": {"name": "away"}})
            await asyncio.sleep(1)

        slow = SlowNodes(cluster, go_down_and_come_back)
        slow.faults.disturb = slow
        await cluster.client.create(PODS, POD, "default")
        await cluster.until(lambda: slow.answers, within=120)
        await asyncio.sleep(10)
        slow.is_down, slow.is_held = False, True
        await cluster.until(lambda: not cluster.controllers.complaint, within=120)
        await asyncio.sleep(30)
        assert await is_there(cluster)
        slow.released.set()
        await asyncio.sleep(300)
        assert await is_there(cluster)
        assert slow.answers == 1


@virtual_time
async def test_a_404_that_comes_once_the_watch_is_resumed_and_before_its_events_makes_no_orphan() -> None:
    async with Cluster(nodes=1, controllers=(COLLECTOR,)) as cluster:

        async def be_interrupted_and_come_back() -> None:
            slow.is_held = True
            slow.faults.break_watches()
            await cluster.client.create(NODES, {"metadata": {"name": "away"}})
            await asyncio.sleep(0.1)
            await cluster.until(lambda: not cluster.controllers.complaint, within=20)

        slow = SlowNodes(cluster, be_interrupted_and_come_back)
        slow.faults.disturb = slow
        await cluster.client.create(PODS, POD, "default")
        await cluster.until(lambda: slow.answers, within=120)
        await asyncio.sleep(30)
        assert await is_there(cluster)
        slow.released.set()
        await asyncio.sleep(300)
        assert await is_there(cluster)


@virtual_time
async def test_the_pods_of_a_node_that_stays_away_go_after_an_interruption_too() -> None:
    async with Cluster(nodes=1, controllers=(COLLECTOR,)) as cluster:

        async def be_interrupted() -> None:
            if slow.answers == 1:
                slow.faults.break_watches()
                await asyncio.sleep(1)

        slow = SlowNodes(cluster, be_interrupted)
        slow.faults.disturb = slow
        await cluster.client.create(PODS, POD, "default")
        await cluster.until(lambda: slow.answers == 2, within=300)
        await asyncio.sleep(60)
        assert not await is_there(cluster)
