"""Configuration, and when a look at everything comes."""

from __future__ import annotations

import asyncio

import pytest

from podlife.errors import ForbiddenError
from podlife.podgc import Reason, Settings
from podlife.wire import Request
from tests.component.podgc.world import GONE_NODE, World, running
from tests.conformance.podgc.situations import P, answer, collect, in_world, make


def test_the_defaults_are_upstreams() -> None:
    """GC-01, GC-02, GC-03: 20 s, 40 s, 12500 pods, all four reasons, all gates on."""
    settings = Settings()
    assert (settings.period_seconds, settings.quarantine_seconds, settings.threshold) == (20, 40, 12_500)
    assert all(settings.does_collect(reason) for reason in Reason)
    assert settings.marks_failed


@in_world
async def test_the_first_pass_comes_at_once_and_the_next_a_period_after_its_end(world: World) -> None:
    """GC-01: a pass finds again what no event told: a deletion that was taken and came to nothing."""
    await world.node()
    await make(world, [P("a", "Succeeded"), P("b", "Succeeded")])
    sent_at: list[float] = []

    async def note(request: Request) -> None:
        sent_at.append(asyncio.get_running_loop().time())

    world.faults.put("DELETE", "/pods/a$", note)
    world.faults.put("DELETE", "/pods/a$", answer(200))
    started = asyncio.get_running_loop().time()
    await collect(world, threshold=1, seconds=45)
    assert [round(at - started) for at in sent_at] == [0, 20, 40]


@pytest.mark.parametrize("threshold", [0, -1])
@in_world
async def test_a_threshold_of_nothing_or_less_switches_the_terminated_off(
    world: World, threshold: int
) -> None:
    """GC-03."""
    await world.node()
    await make(world, [P("a", "Succeeded"), P("b", "Failed")])
    await collect(world, threshold=threshold)
    assert await world.left() == ["a", "b"]


@pytest.mark.parametrize("resource", ["pods", "nodes"])
@in_world
async def test_nothing_happens_before_both_caches_are_there(world: World, resource: str) -> None:
    """GC-04: told to stop before that, it ends without having done anything."""
    await make(world, [P("a", "Succeeded", node=GONE_NODE), P("b", "Running", node="", is_terminating=True)])

    async def stall(request: Request) -> None:
        await asyncio.sleep(3600)

    world.faults.put("GET", f"/{resource}$", stall)
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
    world.faults.put("GET", f"/{resource}$", answer(403))
    with pytest.raises(ForbiddenError):
        await world.collector(threshold=1).sweep_once()
    with pytest.raises(ForbiddenError):
        await world.collector(threshold=1).run()
    assert await world.left() == ["a", "b"]


@in_world
async def test_stopping_waits_for_the_calls_under_way(world: World) -> None:
    """GC-07."""
    await world.node()
    await make(world, [P("a", "Succeeded"), P("b", "Succeeded")])

    async def take_long(request: Request) -> None:
        await asyncio.sleep(5)

    world.faults.put("DELETE", "/pods/a$", take_long)
    async with running(world.collector(threshold=1)) as task:
        await asyncio.sleep(1)
        task.cancel()
    assert await world.left() == ["b"]
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
