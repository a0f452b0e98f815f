"""Configuration, and when a look at everything comes."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import NAMESPACES, PODS, DeleteOptions
from podlife.errors import ForbiddenError
from podlife.podgc import Reason, Settings
from podlife.podgc.metrics import DELETED_TOTAL, ERRORS_TOTAL
from podlife.wire import Request
from tests.component.podgc.world import GONE_NODE, World, answering, delaying, in_cluster, in_world, running
from tests.conformance.podgc.situations import P, Q, collect, make


def test_the_defaults_are_upstreams() -> None:
    """GC-01, GC-02, GC-03: 20 s, 40 s, 12500 pods, all four reasons, all gates on."""
    settings = Settings()
    assert (settings.period_seconds, settings.quarantine_seconds, settings.threshold) == (20, 40, 12_500)
    assert all(settings.does_collect(reason) for reason in Reason)
    assert settings.marks_failed


@in_cluster
async def test_the_first_pass_comes_at_once_and_the_next_a_period_after_its_end(world: World) -> None:
    """GC-01: a pass finds again what no event told: a deletion that was taken and came to nothing."""
    await make(world, [P("a", "Succeeded"), P("b", "Succeeded")])
    sent_at: list[float] = []

    async def note(request: Request) -> None:
        sent_at.append(asyncio.get_running_loop().time())

    world.faults.put("DELETE", "/pods/a$", note)
    world.faults.put("DELETE", "/pods/a$", answering(200))
    started = asyncio.get_running_loop().time()
    await collect(world, threshold=1, seconds=45)
    assert [round(at - started) for at in sent_at] == [0, 20, 40]


@pytest.mark.parametrize("threshold", [0, -1])
@in_cluster
async def test_a_threshold_of_nothing_or_less_switches_the_terminated_off(
    world: World, threshold: int
) -> None:
    """GC-03."""
    await make(world, [P("a", "Succeeded"), P("b", "Failed")])
    await collect(world, threshold=threshold)
    assert await world.left() == ["a", "b"]


@pytest.mark.parametrize("resource", ["pods", "nodes"])
@in_world
async def test_nothing_happens_before_both_caches_are_there(world: World, resource: str) -> None:
    """GC-04: told to stop before that, it ends without having done anything."""
    await make(world, [P("a", "Succeeded", node=GONE_NODE), P("b", "Running", node="", is_terminating=True)])
    world.faults.put("GET", f"/{resource}$", delaying(3600))
    await collect(world, threshold=1, seconds=200)
    assert await world.left() == ["a", "b"]
    assert not world.faults.sent("DELETE")
    assert not world.faults.sent("PATCH")


@in_world
async def test_a_pod_is_collected_once_for_the_first_of_its_reasons(world: World) -> None:
    """GC-05: terminated, then out of service, then orphaned, then unscheduled; upstream deletes for each."""
    await world.node("out", ready="False", taint_effect="NoExecute")
    await make(
        world,
        [
            P("terminated", "Failed", node="out", is_terminating=True),
            P("out", "Running", node="out", is_terminating=True),
            P("orphan", "Running", node=GONE_NODE, is_terminating=True),
            P("unscheduled", "Running", node="", is_terminating=True),
            P("unscheduled-too", "Failed", node="", is_terminating=True),
            P("young", "Failed", node="out"),
        ],
    )
    collector = await collect(world, threshold=2)
    assert {reason: count for (_, reason), count in collector.metrics.deleted.items()} == {
        Reason.TERMINATED: 1,
        Reason.OUT_OF_SERVICE: 1,
        Reason.ORPHANED: 1,
        Reason.UNSCHEDULED: 2,
    }
    assert len(world.faults.sent("DELETE")) == 5
    assert await world.left() == ["young"]


@in_world
async def test_the_reasons_are_looked_at_in_their_order(world: World) -> None:
    """GC-05."""
    await world.node("out", ready="False", taint_effect="NoExecute")
    await make(
        world,
        [
            P("unscheduled", "Running", node="", is_terminating=True),
            P("out", "Running", node="out", is_terminating=True),
            P("old", "Failed", node="out"),
            P("young", "Failed", node="out"),
        ],
    )
    plan = await world.collector(threshold=1).plan_once()
    assert [(victim.pod.metadata.name, victim.reason) for victim in plan.victims] == [
        ("old", Reason.TERMINATED),
        ("out", Reason.OUT_OF_SERVICE),
        ("unscheduled", Reason.UNSCHEDULED),
    ]


@pytest.mark.parametrize("resource", ["pods", "nodes"])
@in_world
async def test_a_list_that_is_refused_ends_everything_with_nothing_done(world: World, resource: str) -> None:
    """GC-06: for a sweep too."""
    await make(world, [P("a", "Succeeded"), P("b", "Succeeded")])
    world.faults.put("GET", f"/{resource}$", answering(403))
    with pytest.raises(ForbiddenError):
        await world.collector(threshold=1).sweep_once()
    with pytest.raises(ForbiddenError):
        await world.collector(threshold=1).run()
    assert await world.left() == ["a", "b"]


@in_cluster
async def test_stopping_waits_for_the_calls_under_way_and_begins_no_others(world: World) -> None:
    """GC-07."""
    await make(world, [P(f"p{number}", "Succeeded") for number in range(6)])
    world.faults.put("DELETE", "/pods/", delaying(5))
    async with running(world.collector(threshold=1, most_in_flight=2)) as task:
        await asyncio.sleep(1)
        task.cancel()
    assert len(await world.left()) == 4
    assert len(world.faults.sent("DELETE")) == 2
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)


# What is counted


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
    world.faults.put("DELETE", "/pods/a$", answering(403))
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
