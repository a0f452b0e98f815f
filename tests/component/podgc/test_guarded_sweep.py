"""A sweep, and the plan that tells of it, where guards hold pods back."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import time
from typing import Any

from podlife.cli.commands.gc.output import Shown, format_plan, plan_as_dict
from podlife.cli.commands.gc.progress import describe
from podlife.cli.commands.gc.summary import Result, summarize
from podlife.client import NAMESPACES, PODS, Connection
from podlife.podgc import Outcome, Progress, Settings
from podlife.podgc.namespace_annotations import FORCE_UNTIL
from podlife.podgc.plan import Guard, Plan
from podlife.podgc.policy.model import STOP, Guards, Window
from podlife.podgc.session import Deletions, GcSession
from podlife.podgc.summary import Summary
from tests.component.podgc.test_guards import ended, lose_nodes, mark
from tests.component.podgc.world import World, answering, in_cluster, in_world, now


def settings(*, is_forced: bool = False, **guards: Any) -> Settings:
    return Settings(threshold=1, guards=Guards(**guards), is_forced=is_forced)


async def sweep(world: World, how: Settings, seen: list[Progress] | None = None) -> Summary:
    session = GcSession(world.client, how, clock=world.clock)
    return await session.execute(on_progress=(seen if seen is not None else []).append)


async def shown(world: World, how: Settings) -> Plan:
    return await GcSession(world.client, how, clock=world.clock).plan()


@in_cluster
async def test_a_sweep_waits_for_room_in_the_minute_where_that_is_short(world: World) -> None:
    await ended(world, 12)
    seen: list[Progress] = []
    summary = await sweep(world, settings(per_minute=5), seen)
    assert summary.is_complete
    assert await world.left() == ["p011"]
    assert 120 <= now() < 122
    assert "Rate limit reached: 6 pods wait 60 s" in map(describe, seen)


@in_cluster
async def test_a_sweep_that_would_wait_long_ends_and_tells_what_is_left(world: World) -> None:
    await ended(world, 30)
    result = Result(has_begun=True)
    how = settings(per_minute=5)
    session = GcSession(world.client, how, clock=world.clock, phases=[Deletions(result.record)])
    result.summary = await session.execute()
    assert now() < 1
    assert len(await world.left()) == 25
    told = summarize(result, Connection("https://example"))
    [problem] = told.problems
    assert problem == (
        "24 pods held back (default/p005, default/p006, default/p007, …): at most 5 pods go in a minute; "
        "lifted by time; `podlife gc run` continues on its own"
    )
    assert told.code == 1


@in_cluster
async def test_a_sweep_of_a_mass_takes_none_and_with_force_all(world: World) -> None:
    await ended(world, 20)
    summary = await sweep(world, settings(share_of_namespace=0.5))
    assert len(await world.left()) == 20
    assert not summary.is_complete
    [held] = summary.held_back
    assert held.refusal.lifted_by.startswith("kubectl annotate namespace default ")
    assert held.refusal.remedy.endswith("or once `podlife gc sweep --force`")
    summary = await sweep(world, settings(share_of_namespace=0.5, is_forced=True))
    assert (await world.left(), summary.is_complete) == (["p019"], True)


@in_world
async def test_pods_that_wait_for_a_quarantine_count_for_the_mass_before_anybody_goes(world: World) -> None:
    await lose_nodes(world)
    for node in range(3):
        await world.delete_node(f"node-{node}")
    await world.node()
    await ended(world, 3)
    how = settings(share_of_cluster=0.5)
    plan = await shown(world, how)
    [held] = plan.held_back
    assert (plan.victims, len(held.pods)) == ((), 14)
    await sweep(world, how)
    assert len(await world.left()) == 23
    await mark(world, "kube-system", FORCE_UNTIL, "2030-01-01T01:00:00Z")
    summary = await sweep(world, how)
    assert (summary.outcomes[Outcome.DELETED], len(await world.left())) == (14, 9)


@in_cluster
async def test_a_sweep_takes_no_more_than_a_pass_may(world: World) -> None:
    await ended(world, 10)
    summary = await sweep(world, settings(per_pass=4))
    assert len(await world.left()) == 6
    assert [(str(item.refusal.guard), len(item.pods)) for item in summary.held_back] == [("perPass", 5)]


@in_cluster
async def test_a_plan_tells_what_is_held_by_what_until_when_and_what_lifts_it(world: World) -> None:
    await ended(world, 3)
    await mark(world, "default", STOP, "an incident")
    plan = await shown(world, settings())
    text = format_plan(plan, "table", world.clock.now(), Shown(settings()))
    assert text == (
        "Nothing to collect now in any namespace.\n\n"
        "Held back:\n"
        "  2 pods by gc-stop: namespace default has annotation podlife.dev/gc-stop: an incident\n"
        "    lifted by `kubectl annotate namespace default podlife.dev/gc-stop-`\n"
    )
    assert format_plan(plan, "name", world.clock.now()) == ""
    await mark(world, "default", STOP, None)
    window = Window(start=time(22), end=time(6), zone="Europe/Berlin")
    plan = await shown(world, settings(windows=(window,), is_observing=True))
    # It is one in the morning in Berlin.
    [item] = plan_as_dict(plan)["heldBack"]
    assert (item["guard"], item["count"], plan.victims) == ("observeOnly", 2, ())
    window = Window(start=time(22), end=time(23), zone="Europe/Berlin")
    [item] = plan_as_dict(await shown(world, settings(windows=(window,))))["heldBack"]
    assert (item["guard"], item["until"]) == ("windows", "2030-01-01T21:00:00Z")
    assert [pod["name"] for pod in item["pods"]] == ["p000", "p001"]


@in_cluster
async def test_a_stop_holds_in_a_sweep_that_is_under_way_too(world: World) -> None:
    """A sweep waits for room in the minute and for quarantines: somebody may see meanwhile that it must not go on."""
    await ended(world, 12)
    async with asyncio.TaskGroup() as group:
        sweeping = group.create_task(sweep(world, settings(per_minute=5)))
        await asyncio.sleep(30)
        await mark(world, "kube-system", STOP, "wait")
    summary = sweeping.result()
    assert len(await world.left()) == 7
    assert not summary.is_complete
    assert [(held.refusal.guard, len(held.pods)) for held in summary.held_back] == [(Guard.STOP, 6)]


@in_cluster
async def test_a_sweep_that_cannot_know_whether_it_is_stopped_does_not_go_on(world: World) -> None:
    await ended(world, 12)
    async with asyncio.TaskGroup() as group:
        sweeping = group.create_task(sweep(world, settings(per_minute=5)))
        await asyncio.sleep(30)
        world.faults.put("GET", "/namespaces$", answering(403))
    summary = sweeping.result()
    assert len(await world.left()) == 7
    assert not summary.is_complete


@in_cluster
async def test_whoever_agrees_to_what_is_shown_agrees_to_none_that_is_held_but_for_the_minute(
    world: World,
) -> None:
    await world.admin.create(NAMESPACES, {"metadata": {"name": "stopped"}})
    await mark(world, "stopped", STOP, "wait")
    await ended(world, 4)
    await ended(world, 3, namespace="stopped")
    how = settings(per_minute=2)
    agreed = await shown(world, how)
    held = {str(each.refusal.guard): len(each.victims) for each in agreed.held_back}
    assert (len(agreed.victims), held) == (2, {"perMinute": 2, "gc-stop": 2})
    await mark(world, "stopped", STOP, None)
    summary = await GcSession(world.client, how, clock=world.clock).execute(agreed)
    assert [str(each.refusal.guard) for each in summary.held_back] == ["gc-stop"]
    page = await world.admin.list(PODS)
    assert Counter(pod["metadata"]["namespace"] for pod in page.items) == {"stopped": 3}
