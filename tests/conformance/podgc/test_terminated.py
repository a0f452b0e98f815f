"""Terminated pods over the threshold."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import NAMESPACES
from podlife.podgc import Reason
from podlife.wire import Request
from tests.component.podgc.world import World, in_cluster, running
from tests.conformance.podgc.situations import P, Row, collect, expect, make

ROWS = {
    "GC-17": Row([P("a", "Failed"), P("b", "Succeeded"), P("c", "Failed")], {"a", "b"}, set(), 1),
    "GC-18": Row([P("a", "Failed"), P("b", "Succeeded")], set(), set(), 0),
    "GC-19": Row([P("a", "Running"), P("b", "Succeeded"), P("c", "Failed")], {"b"}, set(), 1),
    "GC-20": Row([P("a", "Failed"), P("b", "Succeeded")], {"a"}, set(), 1),
    "GC-21": Row([P("a", "Failed"), P("b", "Succeeded")], set(), set(), 5),
}


@pytest.mark.parametrize("row", [pytest.param(row, id=rule) for rule, row in ROWS.items()])
@in_cluster
async def test_the_oldest_go_until_the_threshold_is_met(world: World, row: Row) -> None:
    """GC-24: the counter for terminated pods says how many, and none is patched."""
    await make(world, row.pods)
    collector = await collect(world, threshold=row.threshold)
    await expect(world, row, collector)
    assert collector.metrics.deleted["default", Reason.TERMINATED] == len(row.deleted)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "", "Odd"])
@in_cluster
async def test_every_phase_but_the_three_living_ones_is_terminated(world: World, phase: str) -> None:
    """GC-10."""
    await make(
        world, [P("old", phase), *(P(name.lower(), name) for name in ("Pending", "Running", "Unknown"))]
    )
    await make(world, [P("new", "Succeeded")])
    await collect(world, threshold=1)
    assert await world.left() == ["new", "pending", "running", "unknown"]


@in_cluster
async def test_the_count_is_over_the_whole_cluster(world: World) -> None:
    """GC-11: one namespace's old pods go because of another's many."""
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await make(world, [P("a", "Succeeded"), P("b", "Succeeded", namespace="other")])
    await make(world, [P("c", "Succeeded", namespace="other")])
    await collect(world, threshold=2)
    assert await world.left() == ["b", "c"]


@in_cluster
async def test_evicted_pods_go_first_then_the_oldest_then_by_name_whatever_the_namespace(
    world: World,
) -> None:
    """GC-12."""
    await world.admin.create(NAMESPACES, {"metadata": {"name": "aaa"}})
    await make(world, [P("z-old", "Succeeded"), P("m", "Succeeded", namespace="aaa"), P("b", "Failed")])
    twin = await world.get("m", "aaa")
    await world.plant("b", metadata={"creationTimestamp": twin["metadata"]["creationTimestamp"]})
    await make(world, [P("evicted", "Failed", reason="Evicted"), P("young", "Succeeded")])
    went = [await went_with(world, threshold) for threshold in (4, 3, 2, 1)]
    assert went == [{"evicted"}, {"z-old"}, {"b"}, {"m"}]


async def went_with(world: World, threshold: int) -> set[str]:
    before = set(await world.left())
    await collect(world, seconds=1, threshold=threshold)
    return before - set(await world.left())


@in_cluster
async def test_a_pod_that_succeeded_is_not_evicted_whatever_its_reason(world: World) -> None:
    """GC-13."""
    await make(world, [P("old", "Succeeded"), P("odd", "Succeeded", reason="Evicted")])
    await collect(world, threshold=1)
    assert await world.left() == ["odd"]


@in_cluster
async def test_a_pod_that_is_terminating_counts_and_is_cut_short(world: World) -> None:
    """GC-14: a deletion that has not come to its end yet is brought there."""
    await make(world, [P("a", "Succeeded", is_terminating=True), P("b", "Succeeded")])
    await collect(world, threshold=1)
    assert await world.left() == ["b"]


@in_cluster
async def test_a_pod_held_by_a_finalizer_is_deleted_once_and_takes_nobodys_place(world: World) -> None:
    """GC-14, and better: upstream deletes it again in every pass, as one of the victims of that pass."""
    hold = ("example.com/hold",)
    await make(world, [P("a", "Succeeded", finalizers=hold), P("b", "Failed"), P("c", "Failed")])
    collector = await collect(world, threshold=1, seconds=300)
    assert await world.left() == ["a", "c"]
    assert len(world.faults.sent("DELETE", "/pods/a")) == 1
    held = [(pod.metadata.name, pod.metadata.finalizers) for pod in collector.index.settled]
    assert held == [("a", hold)]


@in_cluster
async def test_pods_that_are_held_for_a_while_cost_no_others_their_lives(world: World) -> None:
    """GC-14: pods of jobs are all held by a finalizer; while its owner is slow, nobody goes in their place."""
    tracking = ("batch.kubernetes.io/job-tracking",)
    await make(world, [P(f"p{number}", "Succeeded", finalizers=tracking) for number in range(8)])
    await collect(world, threshold=5, seconds=300)
    kept = [
        name for name in await world.left() if "deletionTimestamp" not in (await world.get(name))["metadata"]
    ]
    assert kept == ["p3", "p4", "p5", "p6", "p7"]


@in_cluster
async def test_victims_are_deleted_at_the_same_time_within_the_bound(world: World) -> None:
    """GC-15, bounded."""
    await make(world, [P(f"p{number}", "Succeeded") for number in range(9)])
    at_once: list[int] = []
    under_way = 0

    async def count(request: Request) -> None:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        await asyncio.sleep(1)
        under_way -= 1

    world.faults.put("DELETE", "/pods/", count)
    async with running(world.collector(threshold=1, most_in_flight=3)):
        await asyncio.sleep(2.5)
        await asyncio.sleep(1)
    assert max(at_once) == 3
    assert await world.left() == ["p8"]


@in_cluster
async def test_a_victim_that_has_ended_is_deleted_without_a_patch_and_another_is_marked_first(
    world: World,
) -> None:
    """GC-16: no condition is added."""
    hold = ("example.com/hold",)
    await make(world, [P("a", "Succeeded", finalizers=hold), P("b", "", finalizers=hold), P("c", "Failed")])
    await collect(world, threshold=1)
    assert world.patched() == ["b"]
    marked = (await world.get("b"))["status"]
    assert marked["phase"] == "Failed"
    assert "conditions" not in marked
