"""A sweep that is told to stop finishes what is under way, begins nothing more, and tells what is left."""

from __future__ import annotations

from pathlib import Path

from podlife.podgc import Settings
from podlife.podgc.removal import Outcome
from podlife.podgc.sweep import Sweep
from podlife.wire import Request, Response
from tests.component.podgc.world import GONE_NODE, serve
from tests.virtual_time import virtual_time


@virtual_time
async def test_what_is_under_way_is_finished_and_nothing_more_is_begun(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for number in range(6):
            await world.pod(f"p{number}", phase="Succeeded")
        sweep = Sweep(world.client, Settings(threshold=1, most_in_flight=2), world.clock)

        async def stop_then_go_on(_: Request) -> Response | None:
            sweep.stop()
            return None

        world.faults.put("DELETE", "p1$", stop_then_go_on)
        summary = await sweep.run()

        assert summary.outcomes[Outcome.DELETED] == 2
        assert (summary.left, summary.is_complete) == (3, False)
        assert await world.left() == ["p2", "p3", "p4", "p5"]


@virtual_time
async def test_a_quarantine_is_not_waited_for_any_more(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("orphan", node=GONE_NODE)
        sweep = Sweep(world.client, Settings(quarantine_seconds=40), world.clock)
        summary = await sweep.run(lambda progress: sweep.stop() if progress.waiting_seconds else None)
        assert (summary.left, summary.is_complete) == (1, False)
        assert await world.left() == ["orphan"]


@virtual_time
async def test_nodes_that_were_not_looked_for_leave_their_pods(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        for number in range(3):
            await world.pod(f"p{number}", node=f"gone-{number}")
        sweep = Sweep(world.client, Settings(quarantine_seconds=0, most_in_flight=1), world.clock)

        async def stop_then_go_on(_: Request) -> Response | None:
            sweep.stop()
            return None

        world.faults.put("GET", "/nodes/", stop_then_go_on)
        summary = await sweep.run()
        assert summary.left == 3
        assert await world.left() == ["p0", "p1", "p2"]
