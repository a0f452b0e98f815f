"""Terminating pods on nodes that are out of service, and those that were never scheduled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from podlife.podgc import FeatureGates, Reason
from tests.component.podgc.world import GONE_NODE, World, delaying, in_cluster, in_world, running
from tests.conformance.podgc.situations import P, Row, collect, expect, make


@dataclass(frozen=True)
class N:
    """The node of a row."""

    ready: str = "False"
    taint_effect: str = ""
    value: str = ""


TERMINATING = P("b1", "", is_terminating=True)
LIVING = [P("a1", ""), P("a2", "Pending"), P("a3", "Running"), P("a4", "Unknown")]
THREE = [P(name, name.title(), is_terminating=True) for name in ("running", "failed", "succeeded")]

ROWS = {
    "GC-34": (N(), Row([TERMINATING, P("b2", "Failed", is_terminating=True)], set(), set())),
    "GC-35": (N(taint_effect="NoExecute"), Row([*LIVING, TERMINATING], {"b1"}, {"b1"})),
    "GC-36": (N(), Row([TERMINATING], set(), set())),
    "GC-37": (N(ready="True"), Row([TERMINATING], set(), set())),
    "GC-38": (N(taint_effect="NoSchedule"), Row([TERMINATING], {"b1"}, {"b1"})),
    "GC-40": (N(taint_effect="NoExecute", value="any-value"), Row([TERMINATING], {"b1"}, {"b1"})),
    "GC-41": (N(taint_effect="NoExecute"), Row(THREE, {"running", "failed", "succeeded"}, {"running"})),
    "GC-42": (N(ready="True", taint_effect="NoExecute"), Row([TERMINATING], set(), set())),
}


@pytest.mark.parametrize(("node", "row"), [pytest.param(*row, id=rule) for rule, row in ROWS.items()])
@in_world
async def test_only_terminating_pods_on_a_node_that_is_not_ready_and_tainted_go(
    world: World, node: N, row: Row
) -> None:
    """GC-30: the value and the effect of the taint do not matter. GC-33: no threshold applies."""
    await world.node(ready=node.ready, taint_effect=node.taint_effect, value=node.value)
    await make(world, row.pods)
    collector = await collect(world, threshold=0)
    await expect(world, row, collector)
    assert collector.metrics.deleted["default", Reason.OUT_OF_SERVICE] == len(row.deleted)


@pytest.mark.parametrize("ready", ["", "False", "Unknown"])
@in_world
async def test_only_a_ready_condition_that_is_true_makes_a_node_ready(world: World, ready: str) -> None:
    """GC-31."""
    await world.node(ready=ready, taint_effect="NoExecute")
    await make(world, [TERMINATING])
    await collect(world, seconds=1)
    assert await world.left() == []


@in_world
async def test_a_pod_on_a_node_that_is_not_there_is_no_business_of_this_look(world: World) -> None:
    """GC-32: nor one that is on none."""
    await make(world, [P("a", node=GONE_NODE, is_terminating=True), P("b", node="", is_terminating=True)])
    await collect(world, collect=frozenset({Reason.OUT_OF_SERVICE}))
    assert await world.left() == ["a", "b"]


@in_world
async def test_the_taint_collects_at_once_what_has_been_terminating_for_long(world: World) -> None:
    """GC-33: all of them, in whatever order."""
    await world.node(ready="False")
    await make(world, [P(f"p{number}", is_terminating=True) for number in range(5)])
    async with running(world.collector(period_seconds=1000)):
        await asyncio.sleep(10)
        assert len(await world.left()) == 5
        await world.taint("node")
        await asyncio.sleep(0.1)
        assert await world.left() == []


@in_world
async def test_no_condition_is_added(world: World) -> None:
    """GC-43."""
    await world.node(ready="False", taint_effect="NoExecute")
    await make(world, [P("a", "Running", is_terminating=True, finalizers=("example.com/hold",))])
    await collect(world)
    status = (await world.get("a"))["status"]
    assert status["phase"] == "Failed"
    assert "conditions" not in status


@in_world
async def test_without_the_gate_they_are_left_alone(world: World) -> None:
    """GC-30 without NodeOutOfServiceVolumeDetach: as before it was there."""
    await world.node(ready="False", taint_effect="NoExecute")
    await make(world, [TERMINATING])
    await collect(world, gates=FeatureGates(node_out_of_service_volume_detach=False))
    assert await world.left() == ["b1"]


# Terminating pods that were never scheduled


NEVER_SCHEDULED = [P("a", "Failed", node=""), P("b", "Succeeded", node=""), P("c", "Running", node="")]
SCHEDULED_OR_NOT = [P("a", "Failed", node=""), P("b", "Succeeded"), P("c", "Running", is_terminating=True)]
UNSCHEDULED = {
    "GC-81": Row([replace(pod, is_terminating=True) for pod in NEVER_SCHEDULED], {"a", "b", "c"}, {"c"}),
    "GC-82": Row(SCHEDULED_OR_NOT, set(), set()),
}


@pytest.mark.parametrize("row", [pytest.param(row, id=rule) for rule, row in UNSCHEDULED.items()])
@in_cluster
async def test_what_is_terminating_and_on_no_node_goes_whatever_its_phase(world: World, row: Row) -> None:
    """GC-80."""
    await make(world, row.pods)
    collector = await collect(world)
    await expect(world, row, collector)
    assert collector.metrics.deleted["default", Reason.UNSCHEDULED] == len(row.deleted)


@in_world
async def test_they_go_at_the_same_time_and_get_no_condition(world: World) -> None:
    """GC-83, and better: upstream deletes them one after the other."""
    hold = ("example.com/hold",)
    await make(world, [P(name, "Pending", node="", is_terminating=True, finalizers=hold) for name in "abcd"])
    world.faults.put("DELETE", "/pods/", delaying(1))
    async with running(world.collector()):
        await asyncio.sleep(1.5)
    for name in "abcd":
        pod = await world.get(name)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
        assert pod["status"]["phase"] == "Failed"
        assert "conditions" not in pod["status"]
