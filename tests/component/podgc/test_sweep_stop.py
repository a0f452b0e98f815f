"""A sweep that is told to stop finishes what is under way, begins nothing more, and tells what is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podlife.client import Limiter, LimiterSettings
from podlife.podgc import Settings
from podlife.podgc.removal import Outcome
from podlife.podgc.session import GcSession
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.podgc.world import GONE_NODE, serve


@virtual_time
async def test_what_is_under_way_is_finished_and_nothing_more_is_begun(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for number in range(6):
            await world.pod(f"p{number}", phase="Succeeded")
        sweep = GcSession(world.client, Settings(threshold=1, most_in_flight=2), clock=world.clock)

        async def stop_then_go_on(_: Request) -> Response | None:
            sweep.stop()
            return None

        world.faults.put("DELETE", "p1$", stop_then_go_on)
        summary = await sweep.execute()

        assert summary.outcomes[Outcome.DELETED] == 2
        assert (summary.left, summary.is_complete) == (3, False)
        assert await world.left() == ["p2", "p3", "p4", "p5"]


@virtual_time
async def test_calls_that_stand_in_line_are_not_sent(tmp_path: Path) -> None:
    """Many more workers than the server is asked to bear at once: those behind the limiter have begun with nothing."""
    async with serve(tmp_path) as world:
        await world.node()
        for number in range(40):
            await world.pod(f"p{number:02}", phase="Succeeded")
        client = world.client.with_timeout(10, limiter=Limiter(LimiterSettings(initial=4, most=4)))
        sweep = GcSession(client, Settings(threshold=1), clock=world.clock)

        async def stop_then_go_on(_: Request) -> Response | None:
            sweep.stop()
            await asyncio.sleep(1)
            return None

        world.faults.put("DELETE", "/pods/", stop_then_go_on)
        summary = await sweep.execute()
        assert len(world.faults.sent("DELETE")) == summary.outcomes[Outcome.DELETED]
        assert 1 <= summary.outcomes[Outcome.DELETED] <= 4
        assert (summary.left, summary.failures) == (39 - summary.outcomes[Outcome.DELETED], [])
        assert len(await world.left()) == summary.left + 1


@virtual_time
async def test_a_server_that_asks_to_wait_is_not_waited_for(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for number in range(4):
            await world.pod(f"p{number}", phase="Succeeded")
        sweep = GcSession(world.client.with_timeout(60), Settings(threshold=1), clock=world.clock)

        async def refuse(_: Request) -> Response:
            asyncio.get_running_loop().call_later(1, sweep.stop)
            return Response(429, b"{}", headers={"Retry-After": "30"})

        world.faults.put("DELETE", "/pods/", refuse)
        summary = await sweep.execute()
        assert asyncio.get_running_loop().time() == 1
        assert (summary.left, summary.failures) == (3, [])


@virtual_time
async def test_a_pod_that_was_marked_and_not_yet_deleted_is_left(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("orphan", node=GONE_NODE)
        sweep = GcSession(world.client, Settings(quarantine_seconds=0), clock=world.clock)

        async def stop_then_go_on(_: Request) -> Response | None:
            sweep.stop()
            return None

        world.faults.put("PATCH", "/status$", stop_then_go_on)
        summary = await sweep.execute()
        assert (summary.left, world.faults.sent("DELETE")) == (1, [])
        assert await world.left() == ["orphan"]


@virtual_time
async def test_told_to_stop_when_all_is_done_nothing_is_left(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for name in ("a", "b"):
            await world.pod(name, phase="Succeeded")
        sweep = GcSession(world.client, Settings(threshold=1), clock=world.clock)
        summary = await sweep.execute(
            on_progress=lambda progress: sweep.stop() if progress.done == 1 else None
        )
        assert (summary.left, summary.is_complete) == (0, True)


@virtual_time
async def test_a_quarantine_is_not_waited_for_any_more(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("orphan", node=GONE_NODE)
        sweep = GcSession(world.client, Settings(quarantine_seconds=40), clock=world.clock)
        summary = await sweep.execute(
            on_progress=lambda progress: sweep.stop() if progress.waiting_seconds else None
        )
        assert (summary.left, summary.is_complete) == (1, False)
        assert await world.left() == ["orphan"]


@virtual_time
async def test_nodes_that_were_not_looked_for_leave_their_pods(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        for number in range(3):
            await world.pod(f"p{number}", node=f"gone-{number}")
        sweep = GcSession(world.client, Settings(quarantine_seconds=0, most_in_flight=1), clock=world.clock)

        async def stop_then_go_on(_: Request) -> Response | None:
            sweep.stop()
            return None

        world.faults.put("GET", "/nodes/", stop_then_go_on)
        summary = await sweep.execute()
        assert summary.left == 3
        assert await world.left() == ["p0", "p1", "p2"]
