"""NL-40 to NL-48: pods of a node that fails are shown as not ready."""

from __future__ import annotations

import asyncio

from podlife.client import EVENTS, PODS, DeleteOptions
from podlife.nodehealth import NodeHealthSettings
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import Asked, Line, World, condition, ready_status, world
from tests.kit import objects
from tests.kit.embedded import refusal


async def ready_of(w: World, name: str) -> str | None:
    return condition(await w.pod(name) or {}, "Ready").get("status")


def updates(asked: Asked, name: str = "") -> list[float]:
    return asked.of("PATCH", f"/pods/{name}/status") if name else asked.of("PATCH", "/status")


@virtual_time
async def test_a_node_that_fails_is_told_once_and_its_pods_are_marked() -> None:
    """NL-40."""
    async with world() as w, w.at_work():
        await w.add_nodes("n2", silent="n1")
        for name, node in (("a", "n1"), ("b", "n1"), ("c", "n2")):
            await w.add_pod(name, node)
        await asyncio.sleep(60)
        assert [await ready_of(w, name) for name in "abc"] == ["False", "False", "True"]
        events = [each for each in (await w.client.list(EVENTS)).items if each["reason"] == "NodeNotReady"]
        shown = {
            (
                each["type"],
                each["involvedObject"]["kind"],
                each["involvedObject"]["name"],
                each["message"],
                each["source"]["component"],
            )
            for each in events
        }
        assert shown == {
            ("Normal", "Node", "n1", "Node n1 status is now: NodeNotReady", "node-controller"),
            ("Warning", "Pod", "a", "Node is not ready", "node-controller"),
            ("Warning", "Pod", "b", "Node is not ready", "node-controller"),
        }


@virtual_time
async def test_only_the_status_and_its_time_change_and_pods_that_need_nothing_are_skipped() -> None:
    """NL-41."""
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("without", "n1", is_ready=False)
        await w.add_pod("unready", "n1")
        await w.say_ready("unready", "False")
        await w.add_pod("ready", "n1")
        ready = objects.condition(
            "Ready", "True", reason="Because", message="it is", lastTransitionTime="2029-01-01T00:00:00Z"
        )
        other = {"type": "Mine", "status": "True"}
        patch = {"status": {"conditions": [other, ready]}}
        await w.client.patch(PODS, "ready", patch, "default", subresource="status")
        before = await w.pod("ready") or {}
        await asyncio.sleep(60)
        after = await w.pod("ready") or {}
        changed = condition(after, "Ready")
        assert changed.pop("lastTransitionTime") > "2030"
        expected = {**condition(before, "Ready"), "status": "False"}
        del expected["lastTransitionTime"]
        assert changed == expected
        assert condition(after, "Mine") == condition(before, "Mine")
        assert [path for _, path in asked.writes("/pods/")] == [
            "/api/v1/namespaces/default/pods/ready/status"
        ]
        assert await w.events("NodeNotReady") == ["Node n1 status is now: NodeNotReady", "Node is not ready"]


@virtual_time
async def test_a_pod_that_is_gone_is_not_missed_and_one_that_failed_is_told_all_the_same() -> None:
    """NL-42."""
    asked = Asked()

    async def answer(request: Request, to_server: Handler) -> Response:
        if request.method == "PATCH" and request.path.endswith("/pods/gone/status"):
            return refusal(404, "NotFound")
        if request.method == "PATCH" and request.path.endswith("/pods/failing/status"):
            return refusal(500)
        return await to_server(request)

    asked.answer = answer
    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("gone", "n1")
        await w.add_pod("failing", "n1")
        await asyncio.sleep(52)
        told = [
            each["involvedObject"]["name"]
            for each in (await w.client.list(EVENTS)).items
            if each["reason"] == "NodeNotReady"
        ]
        assert sorted(told) == ["failing", "n1"]
        await asyncio.sleep(5)
        assert len(updates(asked, "failing")) == 2, "the node is remembered"


@virtual_time
async def test_what_is_marked_is_not_marked_again() -> None:
    """NL-43: ready, silent, then not ready by its own word: one update."""
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("web", "n1")
        await asyncio.sleep(60)
        assert ready_status(await w.node("n1")) == "Unknown"
        await w.post("n1", Ready="False")
        w.start("n1")
        await asyncio.sleep(30)
        assert len(updates(asked, "web")) == 1


@virtual_time
async def test_what_could_not_be_marked_is_marked_by_the_next_pass() -> None:
    """NL-44."""
    asked = Asked()

    async def once(request: Request, to_server: Handler) -> Response:
        if request.path.endswith("/pods/web/status") and len(updates(asked, "web")) == 1:
            return refusal(500)
        return await to_server(request)

    asked.answer = once
    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("web", "n1")
        await asyncio.sleep(80)
        first, second = updates(asked, "web")
        assert round(second - first) == 5
        assert await ready_of(w, "web") == "False"
        assert await w.events("NodeNotReady") == [
            "Node n1 status is now: NodeNotReady",
            "Node is not ready",
            "Node is not ready",
        ]


@virtual_time
async def test_while_pods_cannot_be_followed_nothing_is_decided() -> None:
    """NL-45: what upstream remembers when it cannot list the pods does not happen here; afterwards all is done."""
    line = Line()
    async with world() as w, w.at_work(way=line):
        await w.add_nodes("n1", "n2")
        await w.add_pod("web", "n1")
        await asyncio.sleep(10)
        line.cut.add("pods")
        await asyncio.sleep(200)
        await w.stop("n1")
        await asyncio.sleep(200)
        assert ready_status(await w.node("n1")) == "True"
        line.cut.clear()
        await asyncio.sleep(120)
        assert ready_status(await w.node("n1")) == "Unknown"
        assert len(updates(line, "web")) == 1
        assert await ready_of(w, "web") == "False"


@virtual_time
async def test_many_nodes_and_pods_are_each_marked_once() -> None:
    """NL-46: upstream's 50 nodes with 100 pods each, here 10 with 20."""
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        await w.add_node("up")
        for node in range(10):
            await w.add_node(f"n{node}", beats=False)
            for pod in range(20):
                await w.add_pod(f"p{node}-{pod}", f"n{node}")
        await asyncio.sleep(70)
        marked = [path for method, path in asked.writes("/pods/")]
        assert len(marked) == len(set(marked)) == 200


@virtual_time
async def test_a_pod_that_comes_late_is_marked_if_its_node_is_not_ready() -> None:
    """NL-47."""
    asked = Asked()
    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("up", silent="down")
        await asyncio.sleep(60)
        for name, node in (("late", "down"), ("well", "up"), ("nowhere", "unknown")):
            pod = await w.add_pod(name, is_ready=False)
            await w.say_ready(name)
            await w.client.bind(name, "default", node, uid=pod["metadata"]["uid"])
        await asyncio.sleep(1)
        assert [await ready_of(w, name) for name in ("late", "well", "nowhere")] == ["False", "True", "True"]
        assert [path for _, path in asked.writes("/pods/")] == ["/api/v1/namespaces/default/pods/late/status"]


@virtual_time
async def test_a_late_pod_that_fails_comes_again_ever_later() -> None:
    """NL-48."""
    asked = Asked()

    async def twice(request: Request, to_server: Handler) -> Response:
        if request.path.endswith("/pods/late/status") and len(updates(asked, "late")) <= 2:
            return refusal(500)
        return await to_server(request)

    asked.answer = twice
    async with world() as w, w.at_work(NodeHealthSettings(), way=asked):
        await w.add_nodes("up", silent="down")
        await asyncio.sleep(60)
        pod = await w.add_pod("late")
        await w.client.bind("late", "default", "down", uid=pod["metadata"]["uid"])
        await asyncio.sleep(2)
        first, second, third = updates(asked, "late")
        assert 0 < second - first < third - second
        assert await ready_of(w, "late") == "False"


@virtual_time
async def test_a_pod_made_anew_under_the_name_is_not_marked_for_the_other() -> None:
    """NL-42 with the UID, which upstream has not: the one that was meant is gone."""
    asked = Asked()

    async def replace(request: Request, to_server: Handler) -> Response:
        if request.method == "PATCH" and request.path.endswith("/pods/web/status"):
            asked.answer = None
            await w.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
            await w.add_pod("web", "n2")
        return await to_server(request)

    async with world() as w, w.at_work(way=asked):
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("web", "n1")
        await asyncio.sleep(30)
        asked.answer = replace
        await asyncio.sleep(60)
        assert await ready_of(w, "web") == "True"
        assert "Node is not ready" not in await w.events("NodeNotReady")
