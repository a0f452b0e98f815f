"""Collecting once: what is planned, what is done, and what is told of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podlife.client import NAMESPACES, PODS, DeleteOptions
from podlife.podgc import Action, Outcome, Progress, Reason, Selection
from podlife.testing import virtual_time
from podlife.wire import Request
from tests.component.podgc.test_collector import status
from tests.component.podgc.world import GONE_NODE, World, serve


async def build(world: World) -> None:
    await world.node()
    await world.pod("old", phase="Succeeded", labels={"app": "x"})
    await world.pod("young", phase="Succeeded")
    await world.pod("unscheduled", phase="Pending", node="", is_terminating=True)
    await world.pod("orphan", node=GONE_NODE)
    await world.pod("alive")


@virtual_time
async def test_a_plan_tells_who_goes_why_and_who_may_go_when_and_changes_nothing(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await build(world)
        plan = await world.collector(threshold=1).plan_once()
        told = [(each.pod.metadata.name, each.reason, each.action, each.why) for each in plan.victims]
        assert told == [
            ("old", Reason.TERMINATED, Action.DELETE, "2 terminated pods, 1 may stay; the oldest go first"),
            (
                "unscheduled",
                Reason.UNSCHEDULED,
                Action.MARK_AND_DELETE,
                "terminating, and was never scheduled",
            ),
        ]
        [later] = plan.later
        assert (later.node, [pod.metadata.name for pod in later.pods], later.seconds) == (
            GONE_NODE,
            ["orphan"],
            40.0,
        )
        assert len(await world.left()) == 5


@virtual_time
async def test_a_sweep_waits_for_the_quarantine_and_does_all_that_was_planned(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await build(world)
        seen: list[Progress] = []
        summary = await world.collector(threshold=1).sweep_once(seen.append)
        assert asyncio.get_running_loop().time() >= 40
        assert await world.left() == ["alive", "young"]
        assert summary.is_complete
        assert summary.outcomes[Outcome.DELETED] == 3
        assert (seen[0].total, seen[0].done) == (2, 0)
        assert (seen[-1].total, seen[-1].done, seen[-1].failed) == (3, 3, 0)
        assert any(39 < progress.waiting_seconds <= 40 for progress in seen)


@virtual_time
async def test_a_node_that_is_back_when_the_quarantine_ends_saves_its_pods(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await build(world)

        async def come_back(request: Request) -> None:
            await world.node(GONE_NODE)

        world.faults.put("GET", f"/nodes/{GONE_NODE}$", come_back)
        await world.collector(threshold=1).sweep_once()
        assert await world.left() == ["alive", "orphan", "young"]


@virtual_time
async def test_pods_of_a_node_that_could_not_be_looked_for_stay_and_the_sweep_is_not_complete(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as world:
        await build(world)
        world.faults.put("GET", f"/nodes/{GONE_NODE}$", lambda _: status(403))
        summary = await world.collector(threshold=1).sweep_once()
        assert await world.left() == ["alive", "orphan", "young"]
        assert not summary.is_complete
        assert set(summary.unknown_nodes) == {GONE_NODE}


@virtual_time
async def test_a_404_that_does_not_name_the_node_saves_its_pods(tmp_path: Path) -> None:
    """A proxy that knows no such page answers so for every node."""
    async with serve(tmp_path) as world:
        await world.pod("orphan", node=GONE_NODE)
        world.faults.put("GET", f"/nodes/{GONE_NODE}$", lambda _: status(404))
        summary = await world.collector().sweep_once()
        assert await world.left() == ["orphan"]
        assert set(summary.unknown_nodes) == {GONE_NODE}


@virtual_time
async def test_a_selection_takes_a_part_of_what_is_planned_for_the_whole_cluster(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
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


@virtual_time
async def test_each_outcome_is_told_and_a_failure_with_its_reason(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
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
        world.faults.put("DELETE", "/refused$", lambda _: status(403))
        summary = await world.collector(threshold=1).sweep_once()
        told = {outcome: count for outcome, count in summary.outcomes.items() if count}
        assert told == {Outcome.GONE: 1, Outcome.REPLACED: 1, Outcome.HELD: 1, Outcome.DELETED: 1}
        [failure] = summary.failures
        assert (failure.victim.pod.metadata.name, type(failure.error).__name__) == (
            "refused",
            "ForbiddenError",
        )
        assert await world.left() == ["held", "refused", "replaced", "young"]


@virtual_time
async def test_what_fails_for_a_passing_reason_is_tried_again(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("a", phase="Succeeded")
        await world.pod("b", phase="Succeeded")
        tries = 0

        async def fail_twice(request: Request) -> object:
            nonlocal tries
            tries += 1
            return await status(500) if tries <= 2 else None

        world.faults.put("DELETE", "/a$", fail_twice)  # type: ignore[arg-type]
        summary = await world.collector(threshold=1).sweep_once()
        assert summary.is_complete
        assert await world.left() == ["b"]


@virtual_time
async def test_a_pod_that_changed_since_the_list_is_decided_about_as_it_is_now(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("a", phase="Running", node="", is_terminating=True, finalizers=("example.com/hold",))

        async def succeed(request: Request) -> None:
            world.faults.clear()
            await world.plant("a", status={"phase": "Succeeded"})

        world.faults.put("PATCH", "/a/status$", succeed)
        summary = await world.collector().sweep_once()
        assert summary.outcomes[Outcome.HELD] == 1
        assert (await world.get("a"))["status"]["phase"] == "Succeeded"


@virtual_time
async def test_a_pod_that_changed_since_the_list_is_read_again_by_whoever_may_only_list(
    tmp_path: Path,
) -> None:
    """The rights of deploy/gc have no `get pods`: a conflict must not need it."""
    async with serve(tmp_path) as world:
        await world.pod("a", phase="Running", node="", is_terminating=True)
        await world.pod("b", phase="Running", node="", is_terminating=True)
        is_first = True

        async def change(request: Request) -> None:
            nonlocal is_first
            if is_first:
                is_first = False
                await world.plant("a", metadata={"labels": {"changed": "yes"}})

        async def replace(request: Request) -> None:
            await world.replace("b")

        world.faults.put("GET", "/pods/[^/]+$", lambda _: status(403))
        world.faults.put("PATCH", "/a/status$", change)
        world.faults.put("PATCH", "/b/status$", replace)
        summary = await world.collector().sweep_once()
        assert summary.is_complete
        assert not is_first
        assert await world.left() == ["b"]


@virtual_time
async def test_sweeping_again_after_a_sweep_was_cut_off_finishes_the_work(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        for number in range(6):
            await world.pod(f"p{number}", phase="Succeeded")

        async def take_long(request: Request) -> None:
            await asyncio.sleep(1)

        world.faults.put("DELETE", "/pods/", take_long)
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
