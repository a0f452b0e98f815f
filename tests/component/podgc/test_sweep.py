"""Collecting once: what is planned, what is done, and what is told of it."""

from __future__ import annotations

import asyncio

import pytest

from podlife.cli.commands.gc.summary import Result, summarize
from podlife.client import NAMESPACES, PODS, Connection, DeleteOptions, Limiter, LimiterSettings
from podlife.podgc import Action, Deletions, GcSession, Outcome, Progress, Reason, Selection, Settings, Victim
from podlife.wire import Request, Response
from tests.component.podgc.test_guards import ended
from tests.component.podgc.world import (
    GONE_NODE,
    Fault,
    World,
    answering,
    calling,
    delaying,
    in_cluster,
    in_world,
    now,
    running,
)


async def build(world: World) -> None:
    await world.node()
    await world.pod("old", phase="Succeeded", labels={"app": "x"})
    await world.pod("young", phase="Succeeded")
    await world.pod("unscheduled", phase="Pending", node="", is_terminating=True)
    await world.pod("orphan", node=GONE_NODE)
    await world.pod("alive")


@in_world
async def test_a_plan_tells_who_goes_why_and_who_may_go_when_and_changes_nothing(world: World) -> None:
    await build(world)
    plan = await world.collector(threshold=1).plan_once()
    told = [(each.pod.metadata.name, each.reason, each.action, each.why) for each in plan.victims]
    assert told == [
        ("old", Reason.TERMINATED, Action.DELETE, "2 terminated pods, 1 may stay; the oldest go first"),
        ("unscheduled", Reason.UNSCHEDULED, Action.MARK_AND_DELETE, "terminating, and was never scheduled"),
    ]
    [later] = plan.later
    assert (later.node, [pod.metadata.name for pod in later.pods], later.seconds) == (
        GONE_NODE,
        ["orphan"],
        40.0,
    )
    assert len(await world.left()) == 5


@in_world
async def test_a_sweep_waits_for_the_quarantine_and_does_all_that_was_planned(world: World) -> None:
    await build(world)
    seen: list[Progress] = []
    summary = await world.collector(threshold=1).sweep_once(seen.append)
    assert now() >= 40
    assert await world.left() == ["alive", "young"]
    assert summary.is_complete
    assert summary.outcomes[Outcome.DELETED] == 3
    assert (seen[0].total, seen[0].done) == (2, 0)
    assert (seen[-1].total, seen[-1].done, seen[-1].failed) == (3, 3, 0)
    assert any(39 < progress.waiting_seconds <= 40 for progress in seen)


@in_world
async def test_a_node_that_is_back_when_the_quarantine_ends_saves_its_pods(world: World) -> None:
    await build(world)

    async def come_back(request: Request) -> None:
        await world.node(GONE_NODE)

    world.faults.put("GET", f"/nodes/{GONE_NODE}$", come_back)
    await world.collector(threshold=1).sweep_once()
    assert await world.left() == ["alive", "orphan", "young"]


async def truncated(request: Request) -> Response:
    return Response(200, b"{")


@pytest.mark.parametrize("fault", [answering(403), answering(500), answering(404), truncated])
@in_world
async def test_pods_of_a_node_that_could_not_be_looked_for_stay_and_the_sweep_is_not_complete(
    world: World, fault: Fault
) -> None:
    """A proxy that knows no such page answers 404 for every node, and does not name it."""
    await build(world)
    world.faults.put("GET", f"/nodes/{GONE_NODE}$", fault)
    summary = await world.collector(threshold=1).sweep_once()
    assert await world.left() == ["alive", "orphan", "young"]
    assert not summary.is_complete
    assert set(summary.unknown_nodes) == {GONE_NODE}
    told = summarize(Result(summary, has_begun=True), Connection("https://example"))
    [problem] = told.problems
    assert problem.startswith(f"cannot get node {GONE_NODE}, keeping its pods: ")
    assert told.code == 1


@in_world
async def test_a_selection_takes_a_part_of_what_is_planned_for_the_whole_cluster(world: World) -> None:
    await build(world)
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await world.pod("youngest", phase="Succeeded", namespace="other")
    collector = world.collector(threshold=1)
    by_namespace = await collector.plan_once(Selection(namespace="other"))
    assert (by_namespace.victims, by_namespace.later) == ((), ())
    by_label = await collector.plan_once(Selection(label_selector="app=x"))
    assert [each.pod.metadata.name for each in by_label.victims] == ["old"]
    await collector.sweep_once(selection=Selection(label_selector="app=x"))
    assert "old" not in await world.left()
    assert "unscheduled" in await world.left()


@in_cluster
async def test_each_outcome_is_told_and_a_failure_with_its_reason(world: World) -> None:
    for name in ("gone", "replaced", "held", "refused", "fine"):
        finalizers = ("example.com/hold",) if name == "held" else ()
        await world.pod(name, phase="Succeeded", finalizers=finalizers)
    await world.pod("young", phase="Succeeded")

    async def vanish(request: Request) -> None:
        await world.admin.delete(PODS, "gone", "default", options=DeleteOptions(grace_period_seconds=0))

    async def come_anew(request: Request) -> None:
        await world.replace("replaced", phase="Running")

    world.faults.put("DELETE", "/gone$", vanish)
    world.faults.put("DELETE", "/replaced$", come_anew)
    world.faults.put("DELETE", "/refused$", answering(403))
    summary = await world.collector(threshold=1).sweep_once()
    told = {outcome: count for outcome, count in summary.outcomes.items() if count}
    assert told == {Outcome.GONE: 1, Outcome.REPLACED: 1, Outcome.HELD: 1, Outcome.DELETED: 1}
    [failure] = summary.failures
    assert (failure.victim.pod.metadata.name, type(failure.error).__name__) == ("refused", "ForbiddenError")
    assert await world.left() == ["held", "refused", "replaced", "young"]


@in_cluster
async def test_what_fails_for_a_passing_reason_is_tried_again(world: World) -> None:
    await world.pods("a", "b", phase="Succeeded")
    tries = 0

    async def fail_twice(request: Request) -> Response | None:
        nonlocal tries
        tries += 1
        return await answering(500)(request) if tries <= 2 else None

    world.faults.put("DELETE", "/a$", fail_twice)
    summary = await world.collector(threshold=1).sweep_once()
    assert summary.is_complete
    assert await world.left() == ["b"]


@in_world
async def test_a_pod_that_changed_since_the_list_is_decided_about_as_it_is_now(world: World) -> None:
    await world.pod("a", phase="Running", node="", is_terminating=True, finalizers=("example.com/hold",))

    async def succeed(request: Request) -> None:
        world.faults.clear()
        await world.plant("a", status={"phase": "Succeeded"})

    world.faults.put("PATCH", "/a/status$", succeed)
    summary = await world.collector().sweep_once()
    assert summary.outcomes[Outcome.HELD] == 1
    assert (await world.get("a"))["status"]["phase"] == "Succeeded"


@in_world
async def test_a_pod_that_changed_since_the_list_is_read_again_by_whoever_may_only_list(world: World) -> None:
    """The rights of deploy/gc have no `get pods`: a conflict must not need it."""
    await world.pods("a", "b", phase="Running", node="", is_terminating=True)
    is_first = True

    async def change(request: Request) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            await world.plant("a", metadata={"labels": {"changed": "yes"}})

    async def replace(request: Request) -> None:
        await world.replace("b")

    world.faults.put("GET", "/pods/[^/]+$", answering(403))
    world.faults.put("PATCH", "/a/status$", change)
    world.faults.put("PATCH", "/b/status$", replace)
    summary = await world.collector().sweep_once()
    assert summary.is_complete
    assert not is_first
    assert await world.left() == ["b"]


@in_cluster
async def test_sweeping_again_after_a_sweep_was_cut_off_finishes_the_work(world: World) -> None:
    await world.pods(*(f"p{number}" for number in range(6)), phase="Succeeded")
    world.faults.put("DELETE", "/pods/", delaying(1))
    cut = asyncio.timeout(1.5)
    try:
        async with cut:
            await world.collector(threshold=1, most_in_flight=2).sweep_once()
    except TimeoutError:
        pass
    assert cut.expired()
    assert 1 < len(await world.left()) < 6
    world.faults.clear()
    summary = await world.collector(threshold=1).sweep_once()
    assert summary.is_complete
    assert await world.left() == ["p5"]


# A sweep that is told to stop finishes what is under way, begins nothing more, and tells what is left


@in_cluster
async def test_what_is_under_way_is_finished_and_nothing_more_is_begun(world: World) -> None:
    await world.pods(*(f"p{number}" for number in range(6)), phase="Succeeded")
    sweep = world.session(threshold=1, most_in_flight=2)
    world.faults.put("DELETE", "p1$", calling(sweep.stop))
    summary = await sweep.execute()

    assert summary.outcomes[Outcome.DELETED] == 2
    assert (summary.left, summary.is_complete) == (3, False)
    assert await world.left() == ["p2", "p3", "p4", "p5"]


@in_cluster
async def test_calls_that_stand_in_line_are_not_sent(world: World) -> None:
    """Many more workers than the server is asked to bear at once: those behind the limiter have begun with nothing."""
    await world.pods(*(f"p{number:02}" for number in range(40)), phase="Succeeded")
    client = world.client.with_timeout(10, limiter=Limiter(LimiterSettings(initial=4, most=4)))
    sweep = GcSession(client, Settings(threshold=1), clock=world.clock)

    async def stop_then_go_on(_: Request) -> Response | None:
        sweep.stop()
        await asyncio.sleep(1)
        return None

    world.faults.put("DELETE", "/pods/", stop_then_go_on)
    summary = await sweep.execute()
    assert len(world.faults.sent("DELETE")) == summary.outcomes[Outcome.DELETED]
    assert 1 <= summary.outcomes[Outcome.DELETED] <= 4
    assert (summary.left, summary.failures) == (39 - summary.outcomes[Outcome.DELETED], [])
    assert len(await world.left()) == summary.left + 1


@in_cluster
async def test_a_server_that_asks_to_wait_is_not_waited_for(world: World) -> None:
    await world.pods(*(f"p{number}" for number in range(4)), phase="Succeeded")
    sweep = GcSession(world.client.with_timeout(60), Settings(threshold=1), clock=world.clock)

    async def refuse(_: Request) -> Response:
        asyncio.get_running_loop().call_later(1, sweep.stop)
        return Response(429, b"{}", headers={"Retry-After": "30"})

    world.faults.put("DELETE", "/pods/", refuse)
    summary = await sweep.execute()
    assert now() == 1
    assert (summary.left, summary.failures) == (3, [])


@in_world
async def test_a_pod_that_was_marked_and_not_yet_deleted_is_left(world: World) -> None:
    await world.pod("orphan", node=GONE_NODE)
    sweep = world.session(quarantine_seconds=0)
    world.faults.put("PATCH", "/status$", calling(sweep.stop))
    summary = await sweep.execute()
    assert (summary.left, world.faults.sent("DELETE")) == (1, [])
    assert await world.left() == ["orphan"]


@in_cluster
async def test_told_to_stop_when_all_is_done_nothing_is_left(world: World) -> None:
    await world.pods("a", "b", phase="Succeeded")
    sweep = world.session(threshold=1)
    summary = await sweep.execute(on_progress=lambda progress: sweep.stop() if progress.done == 1 else None)
    assert (summary.left, summary.is_complete) == (0, True)


@in_world
async def test_a_quarantine_is_not_waited_for_any_more(world: World) -> None:
    await world.pod("orphan", node=GONE_NODE)
    sweep = world.session(quarantine_seconds=40)
    summary = await sweep.execute(
        on_progress=lambda progress: sweep.stop() if progress.waiting_seconds else None
    )
    assert (summary.left, summary.is_complete) == (1, False)
    assert await world.left() == ["orphan"]


@in_world
async def test_nodes_that_were_not_looked_for_leave_their_pods(world: World) -> None:
    for number in range(3):
        await world.pod(f"p{number}", node=f"gone-{number}")
    sweep = world.session(quarantine_seconds=0, most_in_flight=1)
    world.faults.put("GET", "/nodes/", calling(sweep.stop))
    summary = await sweep.execute()
    assert summary.left == 3
    assert await world.left() == ["p0", "p1", "p2"]


# A one-off session executes once: never twice at the same time, and never again with the results of before


@in_cluster
async def test_a_second_execute_is_refused_while_the_first_runs_and_after_it(world: World) -> None:
    await ended(world, 3)
    session = world.session(threshold=1)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(session.execute())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="only once"):
            await session.execute()
    assert first.result().is_complete
    with pytest.raises(RuntimeError, match="only once"):
        await session.execute()
    assert await world.left() == ["p002"]


# What must come before a deletion: a step that does not let a pod go keeps it, and nobody else


class Doubt:
    """Lets nobody of these names go."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.asked: list[str] = []

    async def __call__(self, victim: Victim) -> str:
        name = victim.pod.metadata.name
        self.asked.append(name)
        return "the shelf is full" if name in self.names else ""


async def build_ended(world: World) -> None:
    await world.node()
    await world.pod("unscheduled", phase="Pending", node="", is_terminating=True)
    await world.pods("a", "b", "c", phase="Succeeded")


@in_world
async def test_a_sweep_leaves_what_a_step_keeps_unmarked_and_is_not_complete(world: World) -> None:
    await build_ended(world)
    result = Result(has_begun=True)
    doubt = Doubt("a", "unscheduled")
    how = Settings(threshold=1)
    session = GcSession(
        world.client, how, clock=world.clock, phases=[Deletions(result.record)], steps=[doubt]
    )
    result.summary = summary = await session.execute()
    assert await world.left() == ["a", "c", "unscheduled"]
    assert world.patched() == []
    assert (summary.outcomes[Outcome.KEPT], summary.is_complete) == (2, False)
    told = summarize(result, Connection("https://example"))
    assert told.problems == ["2 pods not deleted (default/a, default/unscheduled): the shelf is full"]
    assert told.code == 1


@in_world
async def test_the_collector_asks_again_about_what_a_step_keeps_while_others_go(world: World) -> None:
    await build_ended(world)
    doubt = Doubt("a")
    recorder = world.recorder()
    collector = world.collector(threshold=1, recorder=recorder, steps=[doubt])
    async with running(collector):
        await asyncio.sleep(10)
        assert await world.left() == ["a", "c"]
        # At 0, 1, 3 and 7 seconds.
        assert doubt.asked.count("a") == 4
        doubt.names.clear()
        await asyncio.sleep(10)
        assert await world.left() == ["c"]
