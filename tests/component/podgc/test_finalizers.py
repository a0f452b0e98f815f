"""Pods held by finalizers: reported, and chosen ones taken off only where the node is gone and nothing speaks against
it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import time
from itertools import pairwise
from typing import Any

from prometheus_client import CollectorRegistry

from podlife.cli.commands.gc.held_pods import format_held, removal_lines
from podlife.client import EVENTS, JOBS, NAMESPACES, PODS, PatchType
from podlife.daemons.gc import PodGarbageCollector
from podlife.podgc import Settings
from podlife.podgc.finalizers.controller import FinalizerController
from podlife.podgc.finalizers.held_pods import held_pods
from podlife.podgc.finalizers.remover import FinalizerRemover, event_of
from podlife.podgc.finalizers.round import FinalizerRound
from podlife.podgc.namespace_annotations import GuardAnnotations
from podlife.podgc.plan import HeldPod, NodeState, Victim
from podlife.podgc.policy.model import Guards, Policy, Protection, Window
from podlife.podgc.summary import FinalizerRemoval, FinalizerSummary
from podlife.wire import Request, Response
from tests.component.podgc.world import GONE_NODE, World, in_cluster, in_world, now, running
from tests.kit.embedded import refusal

Object = dict[str, Any]

ONE, TWO, TRACKING = "example.com/one", "example.com/two", "batch.kubernetes.io/job-tracking"


async def held(world: World, name: str = "p", *finalizers: str, node: str = GONE_NODE, **how: Any) -> Object:
    """Deleted when the world began, at grace 0."""
    finalizers = finalizers or (ONE,)
    return await world.pod(
        name, phase="Failed", node=node, is_terminating=True, grace_seconds=0, finalizers=finalizers, **how
    )


async def one(world: World, name: str = "p") -> HeldPod:
    found = await held_pods(world.client, world.clock.now())
    return next(pod for pod in found if pod.name == name)


async def held_one(world: World, *finalizers: str) -> HeldPod:
    await held(world, "p", *finalizers)
    return await one(world)


def remover(world: World, *allowed: str, **how: Any) -> FinalizerRemover:
    return FinalizerRemover(world.client, world.clock, frozenset(allowed or (ONE,)), **how)


async def finalizers_of(world: World, name: str = "p") -> list[str]:
    found: list[str] = (await world.get(name))["metadata"].get("finalizers", [])
    return found


# What is reported


@in_cluster
async def test_pods_are_reported_once_their_grace_is_over_the_longest_held_first(world: World) -> None:
    await held(world, "orphan", ONE, TWO)
    await world.pod("young", is_terminating=True, grace_seconds=100, finalizers=(ONE,))
    await world.pod("living", finalizers=(ONE,))
    await world.pod("unheld", is_terminating=True, grace_seconds=0)
    await world.pod("nowhere", node="", is_terminating=True, grace_seconds=30, finalizers=(TWO,))
    await asyncio.sleep(60)
    found = await held_pods(world.client, world.clock.now())
    states = [(pod.name, pod.node_state, [each.name for each in pod.finalizers]) for pod in found]
    assert states == [("orphan", NodeState.GONE, [ONE, TWO]), ("nowhere", NodeState.NONE, [TWO])]
    await asyncio.sleep(60)
    found = await held_pods(world.client, world.clock.now(), "default")
    assert [(pod.name, pod.node_state) for pod in found][-1] == ("young", NodeState.THERE)
    assert await held_pods(world.client, world.clock.now(), "kube-system") == []


@in_world
async def test_the_report_tells_who_set_the_finalizer_and_when(world: World) -> None:
    await held(world)
    fields: Object = {"f:metadata": {"f:finalizers": {".": {}, f'v:"{ONE}"': {}}}}
    entry = {"manager": "backup", "operation": "Update", "time": "2029-12-31T23:00:00Z", "fieldsV1": fields}
    await world.plant("p", metadata={"managedFields": [entry]})
    pod = await one(world)
    [finalizer] = pod.finalizers
    assert (finalizer.name, finalizer.manager) == (ONE, "backup")
    await asyncio.sleep(120)
    shown = format_held([pod], "table", world.clock.now())
    words = shown.splitlines()[1].split()
    assert words == ["default", "p", "2m", GONE_NODE, "(gone)", ONE, "backup", "1h2m", "ago"]
    assert "1 pod held by finalizers, 1 of them of nodes that are gone." in shown
    nobody = "No pod is held by a finalizer in "
    assert format_held([], "table", world.clock.now()) == f"{nobody}any namespace.\n"
    assert format_held([], "table", world.clock.now(), "shop") == f"{nobody}namespace shop.\n"
    assert '"lastWritten": "2029-12-31T23:00:00Z"' in format_held([pod], "json", world.clock.now())


# What is taken off, and what not


@in_world
async def test_only_allowed_finalizers_of_a_pod_whose_node_is_gone_are_taken_off(world: World) -> None:
    await held(world, "p", TWO, ONE)
    taken = await remover(world).remove(await one(world))
    assert (taken.taken, taken.left, taken.why) == ((ONE,), (TWO,), "")
    assert await finalizers_of(world) == [TWO]
    taken = await remover(world, ONE, TWO).remove(await one(world))
    assert taken.taken == (TWO,)
    assert await world.is_gone("p")


@in_world
async def test_the_first_and_the_last_of_three_go_in_one_patch(world: World) -> None:
    await held(world, "p", ONE, "example.com/between", TWO)
    taken = await remover(world, ONE, TWO).remove(await one(world))
    assert taken.taken == (ONE, TWO)
    assert await finalizers_of(world) == ["example.com/between"]
    assert len(world.faults.sent("PATCH")) == 1


@in_cluster
async def test_nothing_is_taken_off_while_something_speaks_against_it(world: World) -> None:
    await held(world, "there", node="node")
    await held(world, "nowhere", node="")
    await held(world, "other", TWO)
    living = await world.pod("living", node=GONE_NODE, finalizers=(ONE,))
    asked = {name: await one(world, name) for name in ("there", "nowhere", "other")}
    uid = living["metadata"]["uid"]
    asked["living"] = HeldPod("default", "living", uid, GONE_NODE, world.clock.now(), ())
    said = {name: (await remover(world).remove(pod)).why for name, pod in asked.items()}
    assert said["there"].startswith("node node exists")
    assert said["nowhere"] == "the pod was never scheduled"
    assert said["other"] == f"none of its finalizers ({TWO}) is allowed to be removed"
    assert said["living"].startswith("not held by finalizers alone")
    assert world.faults.sent("PATCH") == []


@in_world
async def test_a_node_that_cannot_be_asked_for_leaves_the_pod_as_it_is(world: World) -> None:
    pod = await held_one(world)

    async def forbidden(request: Request) -> Response:
        return refusal(403, "Forbidden")

    async def lost(request: Request) -> Response:
        # From a proxy on the way: it does not know the page, and nothing of nodes.
        return Response(404, b"<html>no such page</html>")

    for answer in (forbidden, lost):
        world.faults.clear()
        world.faults.put("GET", f"/nodes/{GONE_NODE}$", answer)
        assert f"cannot get node {GONE_NODE}" in (await remover(world).remove(pod)).why
    assert await finalizers_of(world) == [ONE]


@in_world
async def test_a_namespace_that_is_marked_to_be_left_alone_is(world: World) -> None:
    pod = await held_one(world)
    for name in ("default", "kube-system"):
        mark: Object = {"metadata": {"annotations": {"podlife.dev/gc-stop": "audit"}}}
        await world.admin.patch(NAMESPACES, name, mark)
        why = (await remover(world).remove(pod)).why
        assert why == (
            f"namespace {name} is marked to be left alone (audit); "
            f"`kubectl annotate namespace {name} podlife.dev/gc-stop-` lifts it"
        )
        mark["metadata"]["annotations"]["podlife.dev/gc-stop"] = None
        await world.admin.patch(NAMESPACES, name, mark)
    assert (await remover(world).remove(pod)).taken == (ONE,)


@in_world
async def test_a_protected_pod_keeps_its_finalizers_until_it_is_not_protected(world: World) -> None:
    pod = await held_one(world)
    for value in ("2030-01-01T01:00:00Z", "for ever"):
        await world.plant("p", metadata={"annotations": {"podlife.dev/keep-until": value}})
        why = (await remover(world).remove(pod)).why
        assert why.startswith("protected by annotation podlife.dev/keep-until, ")
    await world.plant("p", metadata={"annotations": {"podlife.dev/keep-until": "2030-01-01T01:00:00Z"}})
    await asyncio.sleep(3600)
    assert (await remover(world).remove(pod)).taken == (ONE,)


@in_world
async def test_the_job_controllers_finalizer_goes_only_when_the_job_is_gone(world: World) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = {"metadata": {"name": "sum"}, "spec": {"template": template}}
    made = await world.admin.create(JOBS, job, "default")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sum", "controller": True}
    await held(world, "p", TRACKING, owner={**owner, "uid": made["metadata"]["uid"]})
    await held(world, "q", TRACKING, owner={**owner, "uid": "of-another"})
    why = (await remover(world, TRACKING).remove(await one(world))).why
    assert "belongs to Job sum (it exists): without the finalizer the Job would never count this pod" in why
    # A Job of the same name that was made anew is not its Job.
    assert (await remover(world, TRACKING).remove(await one(world, "q"))).taken == (TRACKING,)
    # Not even then without being named.
    assert "is allowed" in (await remover(world, ONE).remove(await one(world))).why
    await world.admin.delete(JOBS, "sum", "default")
    await world.admin.patch(JOBS, "sum", {"metadata": {"finalizers": None}}, "default")
    assert (await remover(world, TRACKING).remove(await one(world))).taken == (TRACKING,)


@in_world
async def test_a_pod_that_was_made_anew_or_is_gone_is_left_alone(world: World) -> None:
    await held(world)
    old = await one(world)
    await world.admin.patch(PODS, "p", {"metadata": {"finalizers": None}}, "default")
    assert (await remover(world).remove(old)).is_gone
    await held(world)
    assert (await remover(world).remove(old)).is_gone
    assert await finalizers_of(world) == [ONE]


@in_world
async def test_a_pod_that_changes_under_the_patch_is_decided_about_anew(world: World) -> None:
    pod = await held_one(world, TWO, ONE)
    changed = 0

    async def meanwhile(request: Request) -> None:
        nonlocal changed
        changed += 1
        # Another finalizer goes first: what was in the second place is in the first now.
        if changed == 1:
            left = [{"op": "remove", "path": "/metadata/finalizers/0"}]
            await world.admin.patch(PODS, "p", left, "default", type=PatchType.JSON)

    world.faults.put("PATCH", "/pods/p$", meanwhile)
    taken = await remover(world).remove(pod)
    assert (taken.taken, taken.left, changed) == ((ONE,), (), 2)
    assert await world.is_gone("p")


@in_world
async def test_a_pod_that_changes_all_the_time_is_given_up(world: World) -> None:
    pod = await held_one(world)

    async def meanwhile(request: Request) -> None:
        labels = {"metadata": {"labels": {"n": str(len(world.faults.requests))}}}
        await world.admin.patch(PODS, "p", labels, "default")

    world.faults.put("PATCH", "/pods/p$", meanwhile)
    assert (await remover(world).remove(pod)).why == "the pod keeps changing: try again"
    assert await finalizers_of(world) == [ONE]


@in_world
async def test_what_comes_before_may_keep_the_finalizer_and_a_dry_run_asks_nobody(world: World) -> None:
    pod = await held_one(world)
    asked: list[str] = []

    async def full(victim: Victim) -> str:
        asked.append(victim.pod.key)
        return "the archive is full"

    assert (await remover(world, steps=[full]).remove(pod)).why == "the archive is full"
    dry = await remover(world, steps=[full], is_dry=True).remove(pod)
    assert (dry.taken, asked) == ((ONE,), ["default/p"])
    assert await finalizers_of(world) == [ONE]


@in_world
async def test_a_node_that_comes_back_while_the_pod_is_archived_keeps_the_finalizer(world: World) -> None:
    pod = await held_one(world)

    async def slow(victim: Victim) -> str:
        await world.node(GONE_NODE)
        return ""

    assert "exists" in (await remover(world, steps=[slow]).remove(pod)).why
    assert await finalizers_of(world) == [ONE]


@in_world
async def test_a_stop_or_the_end_of_a_window_while_the_pod_is_archived_keeps_the_finalizer(
    world: World,
) -> None:
    pod = await held_one(world)

    async def slow(victim: Victim) -> str:
        await asyncio.sleep(60)
        return ""

    # It is midnight.
    guards = Guards(windows=(Window(start=time(0), end=time(0, 1)),))
    settings = Settings(policy=Policy(guards=guards))
    windowed = remover(world, settings=lambda: settings, steps=[slow])
    assert (await windowed.remove(pod)).why == "outside the deletion windows"
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(remover(world, steps=[slow]).remove(pod))
        await asyncio.sleep(30)
        mark: Object = {"metadata": {"annotations": {"podlife.dev/gc-stop": "audit"}}}
        await world.admin.patch(NAMESPACES, "default", mark)
    assert "namespace default is marked to be left alone (audit)" in taking.result().why
    assert await finalizers_of(world) == [ONE]


# Once


async def begun(world: World) -> FinalizerRound:
    once = FinalizerRound(world.client, world.clock, remover(world), quarantine_seconds=40)
    await once.begin()
    return once


async def rounded(world: World) -> FinalizerSummary:
    once = await begun(world)
    return await once.run(await once.chosen())


@in_cluster
async def test_what_can_be_refused_at_once_is_not_waited_for(world: World) -> None:
    await held(world, "other", TWO)
    await held(world, "nowhere", node="")
    await held(world, "there", node="node")
    once = await begun(world)
    result = await once.run(await held_pods(world.client, world.clock.now()))
    assert sorted(kept.name for kept in result.kept) == ["nowhere", "other", "there"]
    assert now() < 40


@in_cluster
async def test_a_round_waits_for_the_quarantine_and_takes_what_it_may(world: World) -> None:
    await held(world, "p")
    await held(world, "q", TWO)
    await held(world, "r", node="node")
    began = now()
    result = await rounded(world)
    assert now() - began >= 40
    assert list(removal_lines(result)) == [f"{ONE} taken off pod default/p"]
    assert result.is_complete
    assert await world.left() == ["q", "r"]


@in_world
async def test_a_node_that_comes_back_within_the_quarantine_keeps_its_pods_finalizers(world: World) -> None:
    await held(world)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(rounded(world))
        await asyncio.sleep(30)
        await world.node(GONE_NODE)
    result = task.result()
    assert [kept.why for kept in result.kept] == [
        f"node {GONE_NODE} exists: the owner of the finalizer may still be working"
    ]
    assert await finalizers_of(world) == [ONE]


@in_cluster
async def test_a_node_that_goes_only_after_the_first_look_has_no_quarantine_behind_it(world: World) -> None:
    await held(world, node="node")
    once = await begun(world)
    await world.delete_node("node")
    result = await once.run(await once.chosen())
    assert [kept.why for kept in result.kept] == ["node node has not been missing for 40 s yet"]
    assert not result.is_complete


@in_world
async def test_a_round_that_is_stopped_begins_with_nobody_more(world: World) -> None:
    await held(world)
    once = await begun(world)
    asyncio.get_running_loop().call_later(5, once.stop)
    result = await once.run(await once.chosen())
    assert (result.left, result.done) == (1, [])
    assert now() < 40


# While a collector runs


@asynccontextmanager
async def watching(world: World, *allowed: str, **how: Any) -> AsyncIterator[FinalizerController]:
    collector = world.collector()
    recorder = world.recorder()
    watch = FinalizerController(collector, remover(world, *allowed, **how), recorder)
    async with running(collector), asyncio.TaskGroup() as group:
        tasks = [group.create_task(watch.run()), group.create_task(recorder.run())]
        yield watch
        for task in tasks:
            task.cancel()


@in_cluster
async def test_beside_a_collector_what_is_held_goes_after_the_quarantine_and_that_is_told(
    world: World,
) -> None:
    await held(world, "p")
    await held(world, "q", TWO)
    await held(world, "r", node="node")
    async with watching(world) as watch:
        await asyncio.sleep(39)
        assert await world.left() == ["p", "q", "r"]
        await asyncio.sleep(60)
        assert await world.left() == ["q", "r"]
        assert watch.taken == {ONE: 1}
        events = (await world.admin.list(EVENTS, "default")).items
        said = [event["message"] for event in events if event["reason"] == "FinalizerRemoved"]
        assert said == [
            f"podlife-gc removed {ONE} from pod p: it was deleted, and node {GONE_NODE} no longer exists"
        ]
        await world.delete_node("node")
        await asyncio.sleep(100)
        assert await world.left() == ["q"]


@in_world
async def test_a_node_that_was_seen_again_is_missed_anew(world: World) -> None:
    await held(world, "p")
    async with watching(world):
        await asyncio.sleep(30)
        await world.node(GONE_NODE)
        await asyncio.sleep(20)
        await world.delete_node(GONE_NODE)
        await asyncio.sleep(35)
        assert await world.left() == ["p"]
        await asyncio.sleep(60)
        assert await world.left() == []


@in_world
async def test_what_cannot_be_taken_off_is_tried_again_at_growing_intervals(world: World) -> None:
    await held(world, "p")
    asked: list[float] = []

    async def full(victim: Victim) -> str:
        asked.append(now())
        return "" if len(asked) > 4 else "the archive is full"

    async with watching(world, steps=[full]):
        await asyncio.sleep(3600)
        assert await world.left() == []
    gaps = [round(later - sooner) for sooner, later in pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 4 * gaps[0]


@in_world
async def test_a_policy_holds_finalizers_as_it_holds_deletions(world: World) -> None:
    night = Window(start=time(22), end=time(6))
    held_by = {
        "protected by namespace def*": Policy(protection=Protection(namespaces=("def*",))),
        "observe-only: nothing is changed": Policy(guards=Guards(is_observing=True)),
        "outside the deletion windows": Policy(guards=Guards(windows=(night,))),
    }
    pod = await held_one(world)
    in_force = Settings()
    under = remover(world, settings=lambda: in_force)
    await asyncio.sleep(12 * 3600)
    for why, policy in held_by.items():
        in_force = Settings(policy=policy)
        assert why in (await under.remove(pod)).why
    # The last of them, at night.
    await asyncio.sleep(11 * 3600)
    marks = GuardAnnotations({"default": "an incident"})
    stopped = remover(world, settings=lambda: in_force, annotations=lambda: marks)
    assert "gc-stop of namespace default: an incident" in (await stopped.remove(pod)).why
    assert (await under.remove(pod)).taken == (ONE,)


@in_cluster
async def test_gc_run_takes_them_off_beside_collecting_and_counts_them(world: World) -> None:
    await held(world, "p")
    await world.pod("orphan", node=GONE_NODE, finalizers=(ONE,))
    recorder = world.recorder()
    collecting = PodGarbageCollector(
        world.client, Settings(), world.clock, recorder, remove_finalizers=frozenset({ONE})
    )
    registry = CollectorRegistry()
    collecting.export_own(registry)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(collecting.run())
        await asyncio.sleep(300)
        # The orphan was marked and deleted first, and held by its finalizer then.
        assert await world.left() == []
        task.cancel()
    name = "podlife_gc_removed_finalizers_total"
    assert registry.get_sample_value(name, {"finalizer": ONE}) == 2


def test_the_event_goes_to_the_owner_or_else_to_the_namespace_of_the_pod() -> None:
    regarding, message = event_of(FinalizerRemoval("ns", "p", "n1", taken=(ONE,), left=(TWO,)))
    assert regarding == {"apiVersion": "v1", "kind": "Namespace", "name": "ns", "namespace": "ns"}
    assert message.endswith(f"node n1 no longer exists; still held by {TWO}")
