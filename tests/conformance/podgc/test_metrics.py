"""What is counted."""

from __future__ import annotations

from podlife.client import NAMESPACES, PODS, DeleteOptions
from podlife.podgc import Reason
from podlife.podgc.metrics import DELETED_TOTAL, ERRORS_TOTAL
from podlife.wire import Request
from tests.component.podgc.world import GONE_NODE, World
from tests.conformance.podgc.situations import P, Q, answer, collect, in_world, make


@in_world
async def test_pods_are_counted_by_namespace_and_reason(world: World) -> None:
    """GC-110."""
    assert DELETED_TOTAL == "pod_gc_collector_force_delete_pods_total"
    assert [str(reason) for reason in Reason] == ["terminated", "out-of-service", "orphaned", "unscheduled"]
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await make(
        world, [P("a", node=GONE_NODE), P("b", node=GONE_NODE, namespace="other"), P("c", node=GONE_NODE)]
    )
    collector = await collect(world, seconds=Q + 1)
    assert collector.metrics.deleted == {("default", Reason.ORPHANED): 2, ("other", Reason.ORPHANED): 1}


@in_world
async def test_failures_are_counted_by_namespace_and_reason(world: World) -> None:
    """GC-111, GC-112, and better: a try that failed is no deletion."""
    assert ERRORS_TOTAL == "pod_gc_collector_force_delete_pod_errors_total"
    await make(world, [P("a", node="", is_terminating=True)])
    world.faults.put("DELETE", "/pods/a$", answer(403))
    collector = await collect(world, seconds=0.5)
    assert collector.metrics.errors == {("default", Reason.UNSCHEDULED): 1}
    assert not collector.metrics.deleted


@in_world
async def test_a_pod_that_is_gone_already_is_neither_a_deletion_nor_an_error(world: World) -> None:
    """GC-113, and better: upstream counts it as an error."""
    await make(world, [P("a", "Failed", node="", is_terminating=True)])

    async def be_faster(request: Request) -> None:
        await world.admin.delete(PODS, "a", "default", options=DeleteOptions(grace_period_seconds=0))

    world.faults.put("DELETE", "/pods/a$", be_faster)
    collector = await collect(world)
    assert await world.left() == []
    assert not collector.metrics.deleted
    assert not collector.metrics.errors


@in_world
async def test_a_pod_that_a_finalizer_holds_is_counted_once(world: World) -> None:
    """GC-112, and better: upstream counts each of its tries."""
    await make(world, [P("a", node="", is_terminating=True, finalizers=("example.com/hold",))])
    collector = await collect(world, seconds=200)
    assert collector.metrics.deleted == {("default", Reason.UNSCHEDULED): 1}
