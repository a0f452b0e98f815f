"""NL-50 to NL-59 and NL-73, NL-74: the taints that evict, in their turn."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import EVENTS, NODES
from podlife.nodehealth import NodeHealthSettings
from podlife.nodehealth.node_health import NodeAction, decide
from podlife.nodehealth.taints import NOT_READY, UNREACHABLE
from podlife.nodehealth.views import MonitoredNode, NodeTaint
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import Asked, World, ready_status, taints, world
from tests.conformance.nodehealth.objects import look, node
from tests.kit.embedded import refusal

EVICTS = ["unreachable:NoSchedule", "unreachable:NoExecute"]


def evicting(shown: list[str]) -> list[str]:
    return [each for each in shown if each.endswith(":NoExecute")]


async def tainted_at(w: World, name: str) -> float | None:
    return w.history.first("Node", name, lambda each: evicting(taints(each)))


def with_taint(seen: MonitoredNode, key: tuple[str, str]) -> MonitoredNode:
    seen.spec.taints = (NodeTaint(key[0], "", key[1]),)
    return seen


@pytest.mark.parametrize(
    ("status", "tainted", "todo"),
    [
        pytest.param("False", None, NodeAction(waits=True, lacks_taint=True), id="NL-50 not ready"),
        pytest.param("Unknown", None, NodeAction(waits=True, lacks_taint=True), id="NL-50 silent"),
        pytest.param("False", NOT_READY, NodeAction(waits=True), id="NL-50 not ready and tainted"),
        pytest.param(
            "False", UNREACHABLE, NodeAction(swap=(NOT_READY, UNREACHABLE)), id="NL-52 silent before"
        ),
        pytest.param(
            "Unknown", NOT_READY, NodeAction(swap=(UNREACHABLE, NOT_READY)), id="NL-52 not ready before"
        ),
        pytest.param("True", None, NodeAction(is_released=True), id="NL-53 ready"),
        pytest.param(
            "True", UNREACHABLE, NodeAction(is_released=True, removes=(UNREACHABLE,)), id="NL-53 ready again"
        ),
    ],
)
def test_what_is_done_about_a_node(status: str, tainted: tuple[str, str] | None, todo: NodeAction) -> None:
    seen = node(heartbeat=0, status=status)
    if tainted is not None:
        seen = with_taint(seen, tainted)
    again = look(seen, 1, look(seen, 0).health)
    assert decide(seen, again, has_unmarked_pods=False) == todo


@virtual_time
async def test_the_taint_is_added_by_the_state_of_that_moment() -> None:
    """NL-51: not ready, silent, ready again, without a condition, gone."""
    async with world() as w, w.at_work(NodeHealthSettings(eviction_rate=2)) as controllers:
        for name in ("up", "false", "silent", "up2", "up3"):
            await w.add_node(name, beats=name != "silent")
        await w.post("false", Ready="False")
        await asyncio.sleep(60)
        assert await w.taints("false") == ["not-ready:NoSchedule", "not-ready:NoExecute"]
        assert await w.taints("silent") == EVICTS
        tainting, queue = controllers.lifecycle.tainting, controllers.lifecycle.tainting.queues[""]
        await w.client.create(NODES, {"metadata": {"name": "mute"}})
        await asyncio.sleep(6)
        for name in ("up", "mute", "nobody"):
            tainting.add(node(name), asyncio.get_running_loop().time(), lacks_taint=True)
        await asyncio.sleep(4)
        assert (await w.taints("up"), await w.taints("mute")) == ([], [])
        waits = {name: (name in queue, queue.is_waiting(name)) for name in ("nobody", "mute")}
        assert waits == {"nobody": (True, False), "mute": (True, True)}


@virtual_time
async def test_a_node_without_a_condition_is_tried_again_after_50_ms() -> None:
    """NL-51: and gets its taint as soon as it has one."""
    async with world() as w, w.at_work(NodeHealthSettings(eviction_rate=100)) as controllers:
        await w.add_node("up")
        await w.client.create(NODES, {"metadata": {"name": "mute"}})
        await asyncio.sleep(6)
        controllers.lifecycle.tainting.add(node("mute"), asyncio.get_running_loop().time(), lacks_taint=True)
        await asyncio.sleep(0.5)
        assert evicting(await w.taints("mute")) == []
        await w.post("mute", Ready="False")
        await asyncio.sleep(0.3)
        assert evicting(await w.taints("mute")) == ["not-ready:NoExecute"]


@virtual_time
async def test_one_evicting_taint_is_swapped_for_the_other_at_once_and_added_first() -> None:
    """NL-52 and NL-54: outside of all rates; for a moment both are there, at no moment neither."""
    async with world() as w, w.at_work(NodeHealthSettings(eviction_rate=0.01)) as controllers:
        await w.add_nodes("up", "n1")
        await w.post("n1", Ready="False")
        await asyncio.sleep(20)
        assert evicting(await w.taints("n1")) == ["not-ready:NoExecute"]
        await w.stop("n1")
        await asyncio.sleep(60)
        await w.post("n1", Ready="False")
        w.start("n1")
        await asyncio.sleep(10)
        assert w.history.states("Node", "n1", lambda each: evicting(taints(each))) == [
            [],
            ["not-ready:NoExecute"],
            ["not-ready:NoExecute", "unreachable:NoExecute"],
            ["unreachable:NoExecute"],
            ["unreachable:NoExecute", "not-ready:NoExecute"],
            ["not-ready:NoExecute"],
        ]
        assert controllers.lifecycle.metrics.evictions == {"": 1}
        [taint] = [each for each in (await w.node("n1"))["spec"]["taints"] if each["effect"] == "NoExecute"]
        assert taint["timeAdded"] > "2030-01-01T00:01:00Z"


@virtual_time
async def test_a_node_that_is_ready_again_loses_both_at_once() -> None:
    """NL-53, and NL-59: after all it has no taints at all."""
    async with world() as w, w.at_work() as controllers:
        await w.add_nodes("up", "n1")
        await asyncio.sleep(5)
        await w.stop("n1")
        await asyncio.sleep(60)
        assert await w.taints("n1") == EVICTS
        await w.post("n1")
        w.start("n1")
        await asyncio.sleep(5.1)
        assert await w.taints("n1") == []
        assert "n1" not in controllers.lifecycle.tainting.queues[""]


@virtual_time
async def test_a_node_that_waits_keeps_its_place_and_one_whose_taint_was_taken_waits_again() -> None:
    """NL-55, otherwise than upstream, where every pass sends those that wait to the end."""
    async with world() as w, w.at_work() as controllers:
        await w.add_node("up")
        names = ["n1", "n2"]
        for name in names:
            await w.add_node(name, beats=False)
        await asyncio.sleep(52)
        queue = controllers.lifecycle.tainting.queues[""]
        [waiting] = [name for name in names if queue.is_waiting(name)]
        place = queue._places[waiting]
        await asyncio.sleep(6)
        assert queue._places[waiting] == place
        await asyncio.sleep(4)
        assert [evicting(await w.taints(name)) for name in names] == [["unreachable:NoExecute"]] * 2
        await w.taint("n1")
        await asyncio.sleep(16)
        assert await w.taints("n1") == EVICTS, "somebody took them off, and they are put on again"


@virtual_time
async def test_a_node_that_recovered_does_not_block_the_queue() -> None:
    """NL-56."""
    async with world() as w, w.at_work():
        await w.add_node("up")
        await w.add_nodes("a", "b", "c")
        await w.add_node("up2")
        await asyncio.sleep(5)
        await w.stop("a", "b")
        await asyncio.sleep(47)
        first = [name for name in ("a", "b") if evicting(await w.taints(name))]
        assert len(first) == 1
        [waiting] = {"a", "b"} - set(first)
        await w.post(waiting)
        w.start(waiting)
        await w.stop("c")
        await asyncio.sleep(60)
        assert evicting(await w.taints(waiting)) == []
        assert evicting(await w.taints("c")) == ["unreachable:NoExecute"]


@virtual_time
async def test_tainted_nodes_are_counted_by_zone() -> None:
    """NL-57: from zero, nodes and not pods, at ten seconds' distance within a zone (NL-02)."""
    async with world() as w, w.at_work() as controllers:
        for zone in ("east", "west"):
            await w.add_node(f"{zone}-up", zone=zone)
            await w.add_node(f"{zone}-up2", zone=zone)
        await asyncio.sleep(6)
        counts = controllers.lifecycle.metrics.evictions
        east, west = ":\x00:east", ":\x00:west"
        assert counts == {east: 0, west: 0}
        for name in ("e1", "e2"):
            await w.add_node(name, zone="east", beats=False)
            for number in range(3):
                await w.add_pod(f"{name}-{number}", name)
        await asyncio.sleep(80)
        assert counts == {east: 2, west: 0}
        one, two = sorted([await tainted_at(w, "e1") or 0, await tainted_at(w, "e2") or 0])
        assert two - one == pytest.approx(10, abs=0.3)


@virtual_time
async def test_a_new_node_is_told_and_loses_evicting_taints_and_a_gone_one_is_told() -> None:
    """NL-58."""
    async with world() as w, w.at_work():
        await w.add_node(
            "n1",
            taints=[{"key": NOT_READY[0], "effect": "NoExecute"}, {"key": "mine", "effect": "NoExecute"}],
        )
        await asyncio.sleep(6)
        assert evicting(await w.taints("n1")) == ["mine:NoExecute"]
        assert await w.events("RegisteredNode") == ["Node n1 event: Registered Node n1 in Controller"]
        uid = (await w.node("n1"))["metadata"]["uid"]
        await w.stop("n1")
        await w.client.delete(NODES, "n1")
        await asyncio.sleep(6)
        assert await w.events("RemovingNode") == ["Node n1 event: Removing Node n1 from Controller"]
        events = (await w.client.list(EVENTS, "default")).items
        assert {each["involvedObject"]["uid"] for each in events} == {uid}


@virtual_time
async def test_all_zones_down_takes_the_taints_back_and_stops() -> None:
    """NL-73, and NL-74: with one ready again everybody has the whole grace again, and then evictions go on."""
    async with world() as w, w.at_work() as controllers:
        for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
            await w.add_node(name, zone=zone)
        await asyncio.sleep(5)
        await w.stop("a1")
        await asyncio.sleep(60)
        assert evicting(await w.taints("a1")) == ["unreachable:NoExecute"]
        await w.stop("a2", "b1")
        await asyncio.sleep(120)
        assert controllers.lifecycle.monitor.disruption.is_stopped
        for name in ("a1", "a2", "b1"):
            assert ready_status(await w.node(name)) == "Unknown"
            assert await w.taints(name) == ["unreachable:NoSchedule"]
        assert {queue.rate for queue in controllers.lifecycle.tainting.queues.values()} == {0.0}
        await asyncio.sleep(300)
        assert await w.taints("a1") == ["unreachable:NoSchedule"]
        await w.post("b1")
        w.start("b1")
        await asyncio.sleep(5.1)
        heard = {health.last_report_at for health in controllers.lifecycle.monitor.healths.values()}
        assert len(heard) == 1
        assert asyncio.get_running_loop().time() - heard.pop() < 5.2
        await asyncio.sleep(25)
        assert await w.taints("b1") == []
        assert evicting(await w.taints("a1")) == evicting(await w.taints("a2")) == ["unreachable:NoExecute"]


@virtual_time
async def test_a_taint_that_fails_is_tried_again() -> None:
    """NL-51: a server that refuses does not make the node wait for the next pass."""
    asked = Asked()

    async def refuse(request: Request, to_server: Handler) -> Response:
        if request.method == "PATCH" and request.path.endswith("/nodes/n1") and b"NoExecute" in request.body:
            asked.answer = None
            return refusal(500)
        return await to_server(request)

    asked.answer = refuse
    async with world() as w, w.at_work(NodeHealthSettings(eviction_rate=10), way=asked):
        await w.add_node("up")
        await w.add_node("n1", beats=False)
        await asyncio.sleep(51)
        assert evicting(await w.taints("n1")) == ["unreachable:NoExecute"]
