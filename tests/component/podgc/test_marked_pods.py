"""Pods that the collector itself has marked Failed do not count as terminated: nobody dies in their stead."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.component.podgc.world import GONE_NODE, World, running, serve

ENDED = ["ended-0", "ended-1", "ended-2"]


async def build(world: World) -> None:
    await world.node()
    for name in ENDED:
        await world.pod(name, phase="Failed")
    for number in range(30):
        await world.pod(f"orphan-{number}", node=GONE_NODE)


async def slow(_: Request) -> None:
    await asyncio.sleep(3)


@virtual_time
async def test_with_the_threshold_met_marking_orphans_costs_no_terminated_pod(tmp_path: Path) -> None:
    """GC-11, GC-54"""
    async with serve(tmp_path) as world:
        await build(world)
        world.faults.put("DELETE", "orphan-", slow)  # between its marking and its end others look
        async with running(world.collector(threshold=3, period_seconds=1)):
            await asyncio.sleep(120)
        assert await world.left() == ENDED


@virtual_time
async def test_a_pod_that_was_marked_and_whose_node_came_back_counts_as_terminated(tmp_path: Path) -> None:
    """GC-11"""
    async with serve(tmp_path) as world:
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
