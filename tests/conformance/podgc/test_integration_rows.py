"""Upstream's integration rows, on our server: the same settings, and the real server's words for the outcome."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.podgc import FeatureGates
from tests.component.podgc.world import World, in_world, running
from tests.conformance.podgc.situations import P, make

SETTINGS: dict[str, Any] = {"period_seconds": 0.5, "quarantine_seconds": 1.0, "threshold": 0}
HOLD = ("test.k8s.io/finalizer",)

ROWS = [
    pytest.param("Pending", "Failed", True, True, id="GC-120"),
    pytest.param("Succeeded", "Succeeded", False, True, id="GC-121"),
    pytest.param("Failed", "Failed", False, True, id="GC-122"),
    pytest.param("Pending", "Failed", True, True, id="GC-125"),
    pytest.param("Pending", "Failed", True, False, id="GC-125 off"),
]


@pytest.mark.parametrize(("phase", "after", "is_told", "replaces"), ROWS)
@in_world
async def test_a_pod_with_a_finalizer_whose_node_is_deleted(
    world: World, phase: str, after: str, is_told: bool, replaces: bool
) -> None:
    await world.node("node")
    await make(world, [P("a", phase, finalizers=HOLD)])
    gates = FeatureGates(job_pod_replacement_policy=replaces)
    async with running(world.collector(**SETTINGS, gates=gates)):
        await asyncio.sleep(1)
        await world.delete_node("node")
        await asyncio.sleep(15)
    pod = await world.get("a")
    assert "deletionTimestamp" in pod["metadata"]
    assert pod["status"]["phase"] == after
    told = [each for each in pod["status"].get("conditions", ()) if each["type"] == "DisruptionTarget"]
    assert [(each["reason"], each["observedGeneration"]) for each in told] == (
        [("DeletionByPodGC", 1)] if is_told else []
    )


@in_world
async def test_a_pod_without_a_finalizer_whose_node_is_deleted_disappears(world: World) -> None:
    """GC-124."""
    await world.node("node")
    await make(world, [P("a", "Pending")])
    async with running(world.collector(**SETTINGS)):
        await asyncio.sleep(1)
        await world.delete_node("node")
        await asyncio.sleep(15)
    assert await world.left() == []


@pytest.mark.parametrize("replaces", [False, True])
@in_world
async def test_a_terminating_pod_with_a_finalizer_on_a_node_put_out_of_service_becomes_failed(
    world: World, replaces: bool
) -> None:
    """GC-123, and GC-125 with the job pod-replacement policy on: no DisruptionTarget, and the finalizer holds it."""
    await world.node("node", ready="False")
    await make(world, [P("a", "Running", finalizers=HOLD, is_terminating=True)])
    gates = FeatureGates(job_pod_replacement_policy=replaces)
    async with running(world.collector(**SETTINGS, gates=gates)):
        await asyncio.sleep(1)
        await world.taint("node")
        await asyncio.sleep(15)
    pod = await world.get("a")
    assert pod["status"]["phase"] == "Failed"
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
    assert [each["type"] for each in pod["status"].get("conditions", ())] == []
