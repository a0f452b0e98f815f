"""The collector at work on our API server, under virtual time: what happens, and at which second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from podlife.client import PODS
from podlife.errors import ForbiddenError
from podlife.podgc import Reason
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.podgc.world import GONE_NODE, NODE, World, running, serve

Situation = Callable[[World], Awaitable[None]]


def now() -> float:
    return asyncio.get_running_loop().time()


async def eventually(condition: Callable[[], Awaitable[bool]], *, seconds: float = 600) -> float:
    """Wait, in steps of virtual time, until it holds; says at which second it did."""
    deadline = now() + seconds
    while not await condition():
        assert now() < deadline, "it never came"
        await asyncio.sleep(0.05)
    return now()


async def status(code: int, **fields: object) -> Response:
    return Response(code, b'{"kind":"Status","apiVersion":"v1","status":"Failure"}', headers=fields)  # type: ignore[arg-type]


@virtual_time
async def test_a_pod_over_the_threshold_is_deleted_at_once_when_the_event_comes(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for name in ("a", "b"):
            await world.pod(name, phase="Succeeded")
        async with running(world.collector(threshold=2, period_seconds=1000)):
            await asyncio.sleep(5)
            assert await world.left() == ["a", "b"]
            await world.pod("c", phase="Failed")
            took = await eventually(lambda: world.is_gone("a")) - 5
            assert took < 0.1
            assert await world.left() == ["b", "c"]


@virtual_time
async def test_pods_of_a_deleted_node_are_collected_when_its_quarantine_ends_and_not_before(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("a")
        async with running(world.collector()):
            await asyncio.sleep(7)
            await world.delete_node(NODE)
            await asyncio.sleep(39.9)
            assert await world.left() == ["a"]
            assert await eventually(lambda: world.is_gone("a")) == pytest.approx(47, abs=0.2)


@virtual_time
async def test_pods_of_a_node_that_returns_within_quarantine_are_kept(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("a")
        async with running(world.collector()):
            await asyncio.sleep(1)
            await world.delete_node(NODE)
            await asyncio.sleep(30)
            await world.node()
            await asyncio.sleep(300)
            assert await world.left() == ["a"]
            assert world.faults.sent("GET", f"nodes/{NODE}") == []


@virtual_time
async def test_a_live_look_that_errors_touches_nobody_and_a_whole_quarantine_begins(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("a", node=GONE_NODE)
        world.faults.put("GET", f"/nodes/{GONE_NODE}$", lambda _: status(403))
        collector = world.collector()
        async with running(collector):
            await asyncio.sleep(41)
            assert collector.metrics.node_checks["error"] == 1
            world.faults.clear()
            await asyncio.sleep(38)
            assert await world.left() == ["a"]
            assert await eventually(lambda: world.is_gone("a")) == pytest.approx(80, abs=0.5)


@virtual_time
async def test_a_404_that_does_not_name_the_node_says_nothing_of_it(tmp_path: Path) -> None:
    """GC-53: a proxy that knows no such page answers so for every node."""
    async with serve(tmp_path) as world:
        await world.pod("a", node=GONE_NODE)
        world.faults.put("GET", f"/nodes/{GONE_NODE}$", lambda _: status(404))
        collector = world.collector()
        async with running(collector):
            await asyncio.sleep(200)
            assert await world.left() == ["a"]
            assert collector.metrics.node_checks["gone"] == 0
            world.faults.clear()
            await eventually(lambda: world.is_gone("a"), seconds=60)


@virtual_time
async def test_a_pod_created_again_under_its_name_between_decision_and_deletion_lives(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("a", phase="Succeeded")
        await world.pod("b", phase="Succeeded")

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


@virtual_time
async def test_a_pod_that_fails_backs_off_by_itself_while_others_go(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for name in ("a", "b", "c"):
            await world.pod(name, phase="Succeeded")
        world.faults.put("DELETE", "/pods/a$", lambda _: status(403))
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


@virtual_time
async def test_nothing_is_collected_while_a_watch_is_silent(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
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


@virtual_time
async def test_stopping_finishes_the_calls_under_way_and_begins_no_others(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for number in range(6):
            await world.pod(f"p{number}", phase="Succeeded")

        async def take_long(request: Request) -> None:
            await asyncio.sleep(3)

        world.faults.put("DELETE", "/pods/", take_long)
        async with running(world.collector(threshold=1, most_in_flight=2)) as task:
            await asyncio.sleep(1)
            task.cancel()
        assert now() == pytest.approx(3, abs=0.1)
        assert len(await world.left()) == 4
        assert len(world.faults.sent("DELETE")) == 2


@virtual_time
async def test_a_server_that_lets_nobody_list_ends_the_collector_with_its_refusal(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        world.faults.put("GET", "/nodes$", lambda _: status(403))
        with pytest.raises(ForbiddenError):
            await world.collector().run()


@virtual_time
async def test_a_pod_bound_to_a_missing_node_after_the_look_waits_for_the_next(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("a", node=GONE_NODE, finalizers=("example.com/hold",))
        async with running(world.collector()):
            await asyncio.sleep(45)
            assert (await world.get("a"))["metadata"]["deletionGracePeriodSeconds"] == 0
            await world.pod("b", node=GONE_NODE)
            came_at = now()
            assert await eventually(lambda: world.is_gone("b")) - came_at == pytest.approx(40, abs=1)


@virtual_time
async def test_a_pod_held_by_a_finalizer_is_deleted_once_and_goes_when_it_is_let_go(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("a", phase="Succeeded", finalizers=("example.com/hold",))
        await world.pod("b", phase="Succeeded")
        collector = world.collector(threshold=1)
        async with running(collector):
            await asyncio.sleep(200)
            assert len(world.faults.sent("DELETE", "/pods/a")) == 1
            assert [pod.metadata.name for pod in collector.index.settled] == ["a"]
            assert await world.left() == ["a", "b"]
            await world.admin.patch(PODS, "a", {"metadata": {"finalizers": None}}, "default")
            await asyncio.sleep(1)
            assert not collector.index.settled
