"""Terminating pods that were never scheduled."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from podlife.podgc import Reason
from podlife.wire import Request
from tests.component.podgc.world import World, running
from tests.conformance.podgc.situations import P, Row, collect, expect, in_world, make

ENDING = [P("a", "Failed", node=""), P("b", "Succeeded", node=""), P("c", "Running", node="")]
OTHERS = [P("a", "Failed", node=""), P("b", "Succeeded"), P("c", "Running", is_terminating=True)]
ROWS = {
    "GC-81": Row([replace(pod, is_terminating=True) for pod in ENDING], {"a", "b", "c"}, {"c"}),
    "GC-82": Row(OTHERS, set(), set()),
}


@pytest.mark.parametrize("row", [pytest.param(row, id=rule) for rule, row in ROWS.items()])
@in_world
async def test_what_is_terminating_and_on_no_node_goes_whatever_its_phase(world: World, row: Row) -> None:
    """GC-80."""
    await world.node()
    await make(world, row.pods)
    collector = await collect(world)
    await expect(world, row, collector)
    assert collector.metrics.deleted["default", Reason.UNSCHEDULED] == len(row.deleted)


@in_world
async def test_they_go_at_the_same_time_and_get_no_condition(world: World) -> None:
    """GC-83, and better: upstream deletes them one after the other."""
    hold = ("example.com/hold",)
    await make(world, [P(name, "Pending", node="", is_terminating=True, finalizers=hold) for name in "abcd"])

    async def take_long(request: Request) -> None:
        await asyncio.sleep(1)

    world.faults.put("DELETE", "/pods/", take_long)
    async with running(world.collector()):
        await asyncio.sleep(1.5)
    for name in "abcd":
        pod = await world.get(name)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
        assert pod["status"]["phase"] == "Failed"
        assert "conditions" not in pod["status"]
