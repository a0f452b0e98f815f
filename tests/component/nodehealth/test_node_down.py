"""A node dies: what happens when, on the embedded server under virtual time."""

from __future__ import annotations

import asyncio

from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import (
    Asked,
    condition,
    is_terminating,
    now,
    ready_status,
    taints,
    world,
)


@virtual_time
async def test_40_s_to_not_ready_and_300_s_to_eviction() -> None:
    async with world() as w, w.at_work():
        await w.add_nodes("n1", "n2", "n3")
        await w.add_pod("web", "n1")
        await w.add_pod("other", "n2")
        await asyncio.sleep(60)
        stopped_at = now()
        await w.stop("n1")
        await asyncio.sleep(400)
        silent_at = w.history.first("Node", "n1", lambda node: ready_status(node) == "Unknown")
        assert silent_at is not None
        # The last heartbeat is up to ten seconds old when it stops, and is seen, as the silence is, by a pass.
        assert 40 - 10 < silent_at - stopped_at <= 50
        tainted_at = w.history.first("Node", "n1", lambda node: "unreachable:NoExecute" in taints(node))
        assert tainted_at is not None
        assert 0 < tainted_at - silent_at < 0.5
        evicted_at = w.history.first("Pod", "web", is_terminating)
        assert evicted_at is not None
        assert 300 <= evicted_at - tainted_at < 300.5
        assert w.history.first("Pod", "other", is_terminating) is None
        assert w.history.states("Node", "n1", taints) == [
            [],
            ["unreachable:NoSchedule"],
            ["unreachable:NoSchedule", "unreachable:NoExecute"],
        ]
        # Not ready long before it goes, and told why before it does.
        shown = w.history.states(
            "Pod", "web", lambda pod: (condition(pod, "Ready").get("status"), is_terminating(pod))
        )
        assert shown == [(None, False), ("True", False), ("False", False), ("False", True)]
        told_at = w.history.first("Pod", "web", lambda pod: condition(pod, "DisruptionTarget"))
        assert told_at is not None
        assert told_at <= evicted_at


@virtual_time
async def test_a_node_that_returns_in_time_keeps_its_pods() -> None:
    asked = Asked()
    async with world() as w, w.at_work(way=asked) as controllers:
        await w.add_nodes("n1", "n2")
        await w.add_pod("web", "n1")
        await asyncio.sleep(20)
        await w.stop("n1")
        await asyncio.sleep(200)
        assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert list(controllers.eviction.evictions.waiting)
        await w.post("n1")
        w.start("n1")
        await asyncio.sleep(6)
        assert await w.taints("n1") == []
        await asyncio.sleep(600)
        assert not await w.has_gone("web")
        assert asked.of("DELETE") == []
        assert await w.events("TaintManagerEviction") == ["Cancelling deletion of Pod default/web"]


@virtual_time
async def test_all_nodes_of_the_only_zone_down_evicts_nobody() -> None:
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        for name in ("n1", "n2", "n3"):
            await w.add_node(name)
            await w.add_pod(f"on-{name}", name)
        await asyncio.sleep(5)
        await w.stop("n1", "n2", "n3")
        await asyncio.sleep(1000)
        for name in ("n1", "n2", "n3"):
            assert ready_status(await w.node(name)) == "Unknown"
            assert await w.taints(name) == ["unreachable:NoSchedule"]
        assert asked.of("DELETE") == []


@virtual_time
async def test_all_nodes_down_at_once_taints_nobody_even_while_their_pods_are_being_marked() -> None:
    """That takes a while, and the zones are judged only after it."""
    asked = Asked()

    async def slowly(request: Request, to_server: Handler) -> Response:
        if request.method == "PATCH" and "/pods/" in request.path:
            await asyncio.sleep(2)
        return await to_server(request)

    asked.answer = slowly
    async with world() as w, w.at_work(way=asked) as controllers:
        for name in ("n1", "n2", "n3"):
            await w.add_node(name, beats=False)
            await w.add_pod(f"on-{name}", name)
        await asyncio.sleep(100)
        assert controllers.lifecycle.monitor.disruption.is_stopped
        for name in ("n1", "n2", "n3"):
            assert w.history.states("Node", name, taints) == [[], ["unreachable:NoSchedule"]]


@virtual_time
async def test_one_zone_down_is_evicted_node_by_node_and_the_other_is_left() -> None:
    async with world() as w, w.at_work() as controllers:
        for zone in ("east", "west"):
            for number in range(3):
                await w.add_node(f"{zone}{number}", zone=zone)
                await w.add_pod(f"on-{zone}{number}", f"{zone}{number}")
        await asyncio.sleep(5)
        await w.stop("east0", "east1", "east2")
        await asyncio.sleep(420)
        assert controllers.lifecycle.monitor.disruption.states == {
            ":\x00:east": "FullDisruption",
            ":\x00:west": "Normal",
        }
        gone = [w.history.first("Pod", f"on-east{number}", is_terminating) for number in range(3)]
        assert all(gone)
        first, second, third = sorted(at for at in gone if at is not None)
        assert (round(second - first), round(third - second)) == (10, 10)
        assert not any(w.history.first("Pod", f"on-west{number}", is_terminating) for number in range(3))


@virtual_time
async def test_most_of_a_small_zone_down_evicts_nobody() -> None:
    """Three of five: more likely a switch than three nodes."""
    async with world() as w, w.at_work() as controllers:
        for number in range(5):
            await w.add_node(f"n{number}")
            await w.add_pod(f"on-n{number}", f"n{number}")
        await asyncio.sleep(5)
        await w.stop("n0", "n1", "n2")
        await asyncio.sleep(600)
        assert controllers.lifecycle.monitor.disruption.states == {"": "PartialDisruption"}
        assert [await w.has_gone(f"on-n{number}") for number in range(5)] == [False] * 5


@virtual_time
async def test_an_agent_that_is_started_again_within_the_grace_is_not_noticed() -> None:
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("n1", "n2")
        await w.add_pod("web", "n1")
        for _ in range(5):
            await asyncio.sleep(20)
            await w.stop("n1")
            await asyncio.sleep(30)
            await w.post("n1")
            w.start("n1")
        assert w.history.states("Node", "n1", taints) == [[]]
        assert set(w.history.states("Node", "n1", ready_status)) <= {None, "True"}
        assert asked.writes() == []


@virtual_time
async def test_an_agent_that_says_it_is_not_ready_is_tainted_and_its_pods_are_its_own_business() -> None:
    async with world() as w, w.at_work():
        await w.add_nodes("n1", "n2")
        await w.add_pod("web", "n1")
        await asyncio.sleep(10)
        await w.post("n1", Ready="False")
        await asyncio.sleep(10)
        assert await w.taints("n1") == ["not-ready:NoSchedule", "not-ready:NoExecute"]
        assert condition(await w.pod("web") or {}, "Ready")["status"] == "True"
        await asyncio.sleep(300)
        assert await w.has_gone("web")
