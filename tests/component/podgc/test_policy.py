"""A policy at work on our API server, under virtual time: who goes by which rule, at which second, and who stays."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podlife.api.codec import Object, format_time
from podlife.api.selectors import parse_label_selector
from podlife.cli.commands.gc.output import format_plan
from podlife.client import NAMESPACES, PODS
from podlife.podgc import Collector, Settings
from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.plan import Victim
from podlife.podgc.policy import Policy
from podlife.podgc.policy.model import Keep, Per, Protection, Rule, Selector
from podlife.podgc.policy.parse import load_policy
from podlife.podgc.policy_reloader import PolicyReloader
from podlife.podgc.prometheus import GcMetrics
from podlife.wire import Request
from tests.component.podgc.test_collector import eventually
from tests.component.podgc.world import GONE_NODE, START, World, answering, in_cluster, now, running


def after_start(seconds: float) -> str:
    return format_time(START + timedelta(seconds=seconds))


async def ended(world: World, name: str, at: float, *, phase: str = "Succeeded", **how: Any) -> Object:
    """A pod whose container ended at this second."""
    annotations = how.pop("annotations", {})
    namespace = how.get("namespace", "default")
    await world.pod(name, phase="Running", **how)
    terminated = {"exitCode": 0, "finishedAt": after_start(at)}
    found = {"phase": phase, "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}
    return await world.plant(name, namespace, metadata={"annotations": annotations}, status=found)


def collector(world: World, policy: Policy, **settings: Any) -> Collector:
    return world.collector(**settings, policy=policy)


TTL = Policy((Rule("brief", ttl_seconds=60),))


@in_cluster
async def test_a_pod_goes_when_its_time_to_live_is_over_and_not_at_the_next_pass(world: World) -> None:
    await ended(world, "old", -30)
    await ended(world, "young", -10)
    await world.pod("alive")
    async with running(collector(world, TTL, period_seconds=1000)):
        assert await eventually(lambda: world.is_gone("old")) == pytest.approx(30, abs=0.2)
        assert await eventually(lambda: world.is_gone("young")) == pytest.approx(50, abs=0.2)
        assert await world.left() == ["alive"]


@in_cluster
async def test_the_youngest_of_each_owner_stay_and_the_next_to_end_takes_the_place_of_the_oldest(
    world: World,
) -> None:
    rule = Rule("jobs", Selector(owner_kinds=("Job",)), keep=Keep(2, Per.OWNER))
    for owner in ("x", "y"):
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner}
        for number in range(2):
            await ended(world, f"{owner}-{number}", number, owner={**reference, "controller": True})
    await ended(world, "nobodys", 0)
    async with running(collector(world, Policy((rule,)), period_seconds=1000)):
        await asyncio.sleep(5)
        assert await world.left() == ["nobodys", "x-0", "x-1", "y-0", "y-1"]
        await ended(world, "x-2", 2, owner={**reference, "name": "x", "uid": "x", "controller": True})
        await eventually(lambda: world.is_gone("x-0"), seconds=1)
        await asyncio.sleep(60)
        assert await world.left() == ["nobodys", "x-1", "x-2", "y-0", "y-1"]


@in_cluster
async def test_protected_pods_stay_whatever_rule_or_reason_there_is_and_count_nowhere(world: World) -> None:
    protection = Protection(("prod-*",), (parse_label_selector("hold=yes"),), (("example.com/hold", None),))
    policy = Policy((Rule("brief", ttl_seconds=1, max_terminating_seconds=1),), protection)
    await world.admin.create(NAMESPACES, {"metadata": {"name": "prod-x"}})
    await ended(world, "by-namespace", -60, namespace="prod-x")
    await ended(world, "by-label", -60, labels={"hold": "yes"})
    await ended(world, "by-annotation", -60, annotations={"example.com/hold": ""})
    await ended(world, "by-a-time", -60, annotations={KEEP_UNTIL: after_start(100)})
    await ended(world, "by-no-time", -60, annotations={KEEP_UNTIL: "tomorrow"})
    await world.pod("orphan", node=GONE_NODE, labels={"hold": "yes"})
    await world.pod("unscheduled", node="", is_terminating=True, labels={"hold": "yes"})
    await ended(world, "other", -60)
    async with running(collector(world, policy, threshold=1)):
        await eventually(lambda: world.is_gone("other"), seconds=1)
        assert await eventually(lambda: world.is_gone("by-a-time")) == pytest.approx(100, abs=0.2)
        await asyncio.sleep(300)
        assert await world.left() == [
            "by-annotation",
            "by-label",
            "by-namespace",
            "by-no-time",
            "orphan",
            "unscheduled",
        ]


@in_cluster
async def test_a_namespace_that_is_labelled_otherwise_has_other_rules_from_then_on(world: World) -> None:
    selector = Selector(namespace_labels=parse_label_selector("env=dev"))
    await world.admin.create(NAMESPACES, {"metadata": {"name": "team"}})
    await ended(world, "a", -60, namespace="team")
    async with running(collector(world, Policy((Rule("dev", selector, ttl_seconds=1),)))):
        await asyncio.sleep(100)
        assert await world.left() == ["a"]
        await world.admin.patch(NAMESPACES, "team", {"metadata": {"labels": {"env": "dev"}}})
        await eventually(lambda: world.is_gone("a", "team"), seconds=1)


@in_cluster
async def test_while_the_namespaces_are_not_known_nothing_is_collected(world: World) -> None:
    await ended(world, "a", -100)
    world.faults.put("GET", "/namespaces$", answering(500))
    async with running(collector(world, TTL)):
        await asyncio.sleep(100)
        assert await world.left() == ["a"]
        world.faults.clear()
        await eventually(lambda: world.is_gone("a"), seconds=100)


@in_cluster
async def test_a_sweep_does_what_its_plan_shows_and_names_the_rule_of_each(world: World) -> None:
    policy = Policy((Rule("brief", Selector(namespaces=("default",)), ttl_seconds=60),), threshold=1)
    await world.admin.create(NAMESPACES, {"metadata": {"name": "other"}})
    await ended(world, "old", -100)
    await ended(world, "young", -10)
    await ended(world, "first", -100, namespace="other")
    await ended(world, "second", -100, namespace="other")
    governor = collector(world, policy)
    plan = await governor.plan_once()
    assert [(each.pod.metadata.name, str(each.reason), each.rule) for each in plan.victims] == [
        ("first", "terminated", "upstream/terminated"),
        ("old", "expired", "brief"),
    ]
    [upcoming] = plan.upcoming
    assert (upcoming.rule, upcoming.count) == ("brief", 1)
    assert upcoming.seconds == pytest.approx(50)
    shown = format_plan(plan, "table", world.clock.now()).splitlines()
    assert shown[0].split() == ["NAMESPACE", "NAME", "RULE", "REASON", "AGE", "WHY"]
    told = [" ".join(line.split()) for line in shown]
    assert "in 50s 1 expired by rule brief, first default/young" in told
    await governor.sweep_once()
    assert await world.left() == ["second", "young"]


@in_cluster
@pytest.mark.parametrize("until", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "tomorrow"])
async def test_a_time_to_keep_a_pod_that_is_none_keeps_it_and_stops_nobody(world: World, until: str) -> None:
    await ended(world, "kept", -100, annotations={KEEP_UNTIL: until})
    await ended(world, "other", -100)
    async with running(collector(world, TTL)):
        await asyncio.sleep(100)
        assert await world.left() == ["kept"]


@in_cluster
async def test_a_pod_that_its_node_has_refused_ended_then_and_not_when_it_was_made(world: World) -> None:
    """An agent that refuses a pod writes down no container and no condition: only when it took note of the pod."""
    # Pending for days before it got its node.
    await world.pod("refused", phase="Pending")
    status: Object = {"phase": "Failed", "reason": "OutOfcpu", "startTime": after_start(0)}
    await world.plant("refused", status=status)
    async with running(collector(world, TTL)):
        await asyncio.sleep(59)
        assert await world.left() == ["refused"]
        await eventually(lambda: world.is_gone("refused"), seconds=5)


BRIEF = """\
apiVersion: podlife.dev/v1
kind: PodGCPolicy
rules:
  - name: brief
    select: {namespaces: [default]}
    ttlAfterFinished: 60s
"""


def put(path: Path, text: str) -> None:
    """As a ConfigMap is swapped: another file in its place, at once."""
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


@in_cluster
async def test_another_policy_is_put_in_force_without_a_quarantine_that_begins_anew(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    put(path, BRIEF.replace("60s", "24h"))
    await ended(world, "a", -100)
    await world.pod("orphan", node=GONE_NODE)
    governor = collector(world, load_policy(path))
    reloading = PolicyReloader(governor, path, Settings())
    async with running(governor), asyncio.TaskGroup() as group:
        task = group.create_task(reloading.run())
        await asyncio.sleep(30)
        assert await world.left() == ["a", "orphan"]
        put(path, BRIEF)
        await eventually(lambda: world.is_gone("a"), seconds=5)
        # Its quarantine has run since the beginning.
        assert await eventually(lambda: world.is_gone("orphan")) == pytest.approx(40, abs=1.5)
        assert governor.metrics.policy_generation == 2
        assert governor.metrics.deleted_by_rule == {"brief": 1, "upstream/orphaned": 1}
        task.cancel()


@in_cluster
async def test_a_policy_that_is_still_being_written_is_not_put_in_force(world: World, tmp_path: Path) -> None:
    """Its beginning is a policy as well, and one that protects nobody yet."""
    path = tmp_path / "policy.yaml"
    protection = "protect:\n  annotations: [hold]\n"
    put(path, BRIEF.replace("60s", "24h"))
    await ended(world, "a", -100, annotations={"hold": ""})
    governor = collector(world, load_policy(path))
    reloading = PolicyReloader(governor, path, Settings())
    async with running(governor), asyncio.TaskGroup() as group:
        task = group.create_task(reloading.run())
        await asyncio.sleep(10.1)
        with path.open("w") as file:
            for piece in (BRIEF, *protection.splitlines(keepends=True)):
                file.write(piece)
                file.flush()
                # Longer than between two looks would be a file that nobody can know to be unfinished.
                await asyncio.sleep(1.9)
        await asyncio.sleep(60)
        assert await world.left() == ["a"]
        assert governor.metrics.policy_generation == 2
        assert governor.settings.policy is not None
        assert governor.settings.policy.protection.annotations == (("hold", None),)
        task.cancel()


@in_cluster
async def test_a_policy_that_comes_while_a_step_takes_its_time_saves_whom_it_protects(world: World) -> None:
    sparing = Policy(TTL.rules, Protection(labels=(parse_label_selector("hold=yes"),)))
    asked: list[str] = []

    async def take_time(victim: Victim) -> str:
        if not asked:
            governor.put_in_force(Settings(policy=sparing))
        asked.append(victim.pod.metadata.name)
        await asyncio.sleep(5)
        return ""

    await ended(world, "held", -100, labels={"hold": "yes"})
    await ended(world, "other", -100)
    settings = Settings(policy=TTL)
    governor = Collector(world.client, settings, clock=world.clock, steps=[take_time])
    async with running(governor):
        await eventually(lambda: world.is_gone("other"))
        await asyncio.sleep(100)
        assert await world.left() == ["held"]
        assert asked[0] == "held"


@in_cluster
async def test_a_policy_that_is_none_is_refused_with_its_line_and_the_one_in_force_stays(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "policy.yaml"
    put(path, BRIEF)
    governor = collector(world, load_policy(path))
    recorder = world.recorder()
    reloading = PolicyReloader(governor, path, Settings(), recorder)
    async with running(governor), asyncio.TaskGroup() as group:
        task = group.create_task(reloading.run())
        await asyncio.sleep(10)
        put(path, BRIEF.replace("ttlAfterFinished", "ttlAfterFinnished"))
        await asyncio.sleep(30)
        complaints = [each for each in caplog.messages if "policy not reloaded" in each]
        assert len(complaints) == 1
        assert f"{path}:6:5:" in complaints[0]
        assert (governor.metrics.policy_generation, governor.metrics.is_policy_refused) == (1, True)
        await ended(world, "a", -100)
        await eventually(lambda: world.is_gone("a"), seconds=1)
        path.unlink()
        await asyncio.sleep(10)
        put(path, BRIEF.replace("brief", "short"))
        await asyncio.sleep(10)
        await ended(world, "b", -100)
        await eventually(lambda: world.is_gone("b"), seconds=1)
        assert not governor.metrics.is_policy_refused
        assert governor.metrics.deleted_by_rule == {"brief": 1, "short": 1}
        told = {
            sample.name: sample.value
            for metric in GcMetrics(governor).collect()
            for sample in metric.samples
            if sample.name.startswith("podlife_gc_policy") and not sample.labels
        }
        assert told == {"podlife_gc_policy_generation": 2.0, "podlife_gc_policy_refused": 0.0}
        task.cancel()


@in_cluster
async def test_an_ended_pod_that_is_protected_while_its_deletion_is_on_the_wire_is_not_deleted(
    world: World,
) -> None:
    policy = Policy(TTL.rules, Protection(labels=(parse_label_selector("hold=yes"),)))
    await ended(world, "swept", -100)

    async def protect(request: Request) -> None:
        world.faults.clear()
        name = request.path.rpartition("/")[2]
        await world.admin.patch(PODS, name, {"metadata": {"labels": {"hold": "yes"}}}, "default")

    world.faults.put("DELETE", "/pods/swept$", protect)
    summary = await collector(world, policy).sweep_once()
    assert not summary.is_complete
    world.faults.put("DELETE", "/pods/collected$", protect)
    await ended(world, "collected", -100)
    async with running(collector(world, policy)):
        await asyncio.sleep(100)
        assert await world.left() == ["collected", "swept"]
        assert len(world.faults.sent("DELETE", "collected")) == 1


@in_cluster
async def test_a_pod_that_is_protected_between_the_plan_and_its_deletion_is_left_alone(world: World) -> None:
    policy = Policy((), Protection(labels=(parse_label_selector("hold=yes"),)))
    await world.pod("unscheduled", node="", phase="Pending", is_terminating=True)

    async def protect(request: Request) -> None:
        world.faults.clear()
        await world.admin.patch(PODS, "unscheduled", {"metadata": {"labels": {"hold": "yes"}}}, "default")

    world.faults.put("PATCH", "/pods/unscheduled/status$", protect)
    summary = await collector(world, policy).sweep_once()
    assert await world.left() == ["unscheduled"]
    assert not summary.is_complete
    assert now() < 10
