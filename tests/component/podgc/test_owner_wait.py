"""Waiting for the owner: a finished pod stays until its owner has seen the end, and no longer than it was said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from podlife.cli.commands.gc.output import format_plan, plan_as_dict
from podlife.client import JOBS, PODS, DeleteOptions
from podlife.errors import ForbiddenError
from podlife.podgc import Collector, Outcome, Settings
from podlife.podgc.owner_wait.step import OwnerStep
from podlife.podgc.plan import Action, Victim
from podlife.podgc.policy.model import OwnerWait, Policy, Rule, Selector
from podlife.podgc.reasons import Reason
from podlife.podgc.session import GcSession
from podlife.podgc.views import Pod
from podlife.testing import Behaviour, Cluster, virtual_time
from podlife.wire import Request, Response
from tests.component.podgc.world import World, answering, in_world, now, running
from tests.kit.embedded import refusal

Object = dict[str, Any]

POLICY = Policy(rules=(Rule("jobs", wait_for_owner=OwnerWait(600)), Rule("others")))
RUN: Object = {"apiVersion": "example.com/v1", "kind": "Run", "name": "r", "uid": "run-1", "controller": True}
KINDS = {
    "resources": [{"name": "runs/status", "kind": "Run"}, {"name": "runs", "kind": "Run", "namespaced": True}]
}


def victim(pod: Object, rule: str = "jobs") -> Victim:
    return Victim(msgspec.convert(pod, Pod), Reason.TERMINATED, Action.DELETE, "", rule)


def answer(obj: Object) -> Callable[[Request], Awaitable[Response | None]]:
    async def answered(request: Request) -> Response:
        return Response(200, json.dumps(obj).encode())

    return answered


class Runs:
    """A kind of somebody else's, as a server with its definition answers for it."""

    def __init__(self, world: World) -> None:
        self.run: Object | None = {"metadata": {"uid": "run-1"}, "status": {"phase": "Running"}}
        self.refusal: Response | None = None
        self.reads = 0
        world.faults.put("GET", "^/apis/example.com/v1$", answer(KINDS))
        world.faults.put("GET", "^/apis/example.com/v1/namespaces/default/runs/r$", self._get)

    async def _get(self, request: Request) -> Response:
        self.reads += 1
        if self.refusal is not None:
            return self.refusal
        if self.run is None:
            return refusal(404, "NotFound", details={"name": "r"})
        return Response(200, json.dumps(self.run).encode())


def step_of(world: World) -> OwnerStep:
    return OwnerStep(world.client, lambda: POLICY, world.clock)


async def finished(world: World, name: str = "p", owner: Object | None = RUN, **how: Any) -> Object:
    """Created long ago, its end is known by its conditions: now."""
    ended = {"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    return await world.pod(name, phase="Succeeded", owner=owner, conditions=[ended], **how)


@in_world
async def test_a_pod_stays_until_its_owner_of_any_kind_has_ended(world: World) -> None:
    runs = Runs(world)
    pod = await finished(world)
    step = step_of(world)
    said = await step(victim(pod))
    assert said == "waiting for its owner: Run r has not ended yet; until 2030-01-01T00:10:00Z at most"
    runs.run = {"metadata": {"uid": "run-1"}, "status": {"phase": "Succeeded"}}
    await asyncio.sleep(6)
    assert await step(victim(pod)) == ""


@in_world
async def test_a_rule_without_the_wait_and_upstreams_reasons_ask_nobody(world: World) -> None:
    runs = Runs(world)
    pod = await finished(world)
    step = step_of(world)
    for rule in ("", "others", "upstream/terminated"):
        assert await step(victim(pod, rule)) == ""
    assert runs.reads == 0
    assert world.faults.sent("GET") == []


@in_world
async def test_a_policy_that_waits_and_comes_while_a_step_takes_its_time_is_heeded(world: World) -> None:
    patient = Policy((Rule("all", ttl_seconds=0, wait_for_owner=OwnerWait(600)),))

    async def take_time(victim: Victim) -> str:
        collector.put_in_force(Settings(policy=patient))
        await asyncio.sleep(5)
        return ""

    Runs(world)
    await world.node()
    await finished(world)
    settings = Settings(policy=Policy((Rule("all", ttl_seconds=0),)))
    collector = Collector(world.client, settings, clock=world.clock, steps=[take_time])
    async with running(collector):
        await asyncio.sleep(500)
        assert await world.left() == ["p"]
        await asyncio.sleep(150)
        assert await world.left() == []


@in_world
async def test_an_end_at_the_end_of_all_time_is_waited_for_and_ends_nothing_else(world: World) -> None:
    Runs(world)
    ended = {"type": "Ready", "status": "False", "lastTransitionTime": "9999-12-31T23:59:59Z"}
    pod = await world.pod("p", phase="Succeeded", owner=RUN, conditions=[ended])
    step = step_of(world)
    assert "Run r has not ended yet" in await step(victim(pod))


@in_world
async def test_the_bound_lets_the_pod_go_whatever_its_owner_does(world: World) -> None:
    Runs(world)
    pod = await finished(world, finalizers=("batch.kubernetes.io/job-tracking",))
    step = step_of(world)
    await asyncio.sleep(599)
    assert "has not counted it" in await step(victim(pod))
    await asyncio.sleep(1)
    assert await step(victim(pod)) == ""


@in_world
@pytest.mark.parametrize("body", [b"<html>no such page</html>", b"404 page not found\n"])
async def test_a_404_that_does_not_say_that_the_owner_is_gone_keeps_the_pod(
    world: World, body: bytes
) -> None:
    """A proxy on the way, or a kind that is not served any more or not yet."""
    runs = Runs(world)
    runs.refusal = Response(404, body)
    step = step_of(world)
    assert "Run r: cannot be read (404" in await step(victim(await finished(world)))


@in_world
async def test_an_owner_that_is_gone_or_another_by_now_is_not_waited_for(world: World) -> None:
    runs = Runs(world)
    runs.run = None
    pod = await finished(world)
    assert await step_of(world)(victim(pod)) == ""
    runs.run = {"metadata": {"uid": "run-2"}, "status": {"phase": "Running"}}
    assert await step_of(world)(victim(pod)) == ""


@in_world
async def test_an_owner_that_cannot_be_read_keeps_the_pod_and_that_is_told(world: World) -> None:
    runs = Runs(world)
    pod = await finished(world)
    runs.refusal = refusal(403, "Forbidden")
    said = await step_of(world)(victim(pod))
    assert "Run r: cannot be read (403 Forbidden); until" in said
    unknown = {**RUN, "kind": "Walk"}
    pod = await finished(world, "q", unknown)
    said = await step_of(world)(victim(pod))
    assert "Walk r: the server does not have kind Walk in example.com/v1; until" in said
    odd = await finished(world, "t", {**RUN, "apiVersion": "../v1"})
    assert "the server does not have kind Run in ../v1" in await step_of(world)(victim(odd))
    nowhere = {**RUN, "apiVersion": "nowhere.example/v1"}
    pod = await finished(world, "s", nowhere)
    assert "the server does not have kind Run in nowhere" in await step_of(world)(victim(pod))


@in_world
async def test_an_owner_that_does_not_answer_keeps_the_pod_and_nobody_waits_for_long(world: World) -> None:
    pod = await finished(world)

    async def silent(request: Request) -> Response:
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits so long")

    world.faults.put("GET", "^/apis/example.com/v1$", silent)
    began = now()
    said = await step_of(world)(victim(pod))
    assert "cannot be read" in said
    assert now() - began <= 10


@in_world
async def test_a_pod_that_is_gone_or_was_made_anew_is_left_to_the_deletion(world: World) -> None:
    Runs(world)
    pod = await finished(world)
    step = step_of(world)
    await world.replace("p", phase="Succeeded", owner=RUN)
    assert await step(victim(pod)) == ""
    await world.admin.delete(PODS, "p", "default", options=DeleteOptions(grace_period_seconds=0))
    assert await step(victim(pod)) == ""


@in_world
async def test_many_pods_of_one_owner_cost_one_read(world: World) -> None:
    runs = Runs(world)
    pods = [await finished(world, f"p{number}") for number in range(20)]
    step = step_of(world)
    said = await asyncio.gather(*(step(victim(pod)) for pod in pods))
    assert all(said)
    assert runs.reads == 1
    waiting = await step.waiting([victim(pod) for pod in pods])
    assert set(waiting) == {pod["metadata"]["uid"] for pod in pods}
    assert runs.reads == 1


async def jobs_pod(cluster: Cluster) -> Object | None:
    pods = (await cluster.client.list(PODS, "default")).items
    return pods[0] if pods else None


async def has_finished(cluster: Cluster) -> bool:
    pod = await jobs_pod(cluster)
    return pod is not None and pod["status"]["phase"] == "Succeeded"


JOB: Object = {
    "metadata": {"name": "sum"},
    "spec": {
        "completions": 2,
        "parallelism": 1,
        "template": {"spec": {"containers": [{"name": "main", "image": "adds"}], "restartPolicy": "Never"}},
    },
}


async def uncounted_pod(cluster: Cluster) -> None:
    """One that has ended while the Job controller was away."""
    cluster.behave(Behaviour(run_seconds=60), image="adds")
    await cluster.client.create(JOBS, JOB, "default")
    await cluster.settled()
    await cluster.controllers.kill("job")
    await cluster.until(lambda: has_finished(cluster), within=180, what="the pod's end")


JOBS_GO: Policy = Policy(
    rules=(
        Rule("jobs", ttl_seconds=10, selector=Selector(owner_kinds=("Job",)), wait_for_owner=OwnerWait(600)),
    )
)


@virtual_time
async def test_the_collector_keeps_a_jobs_pod_while_nobody_counts_and_takes_it_then() -> None:
    async with Cluster(nodes=1, controllers=("job", "scheduler")) as cluster:
        await uncounted_pod(cluster)
        first = await jobs_pod(cluster)
        assert first is not None
        settings = Settings(policy=JOBS_GO)
        async with running(Collector(cluster.client, settings, clock=cluster.clock)):
            await cluster.advance(minutes=3)
            still = await cluster.client.get(PODS, first["metadata"]["name"], "default")
            # Not even asked to go: the Job would have been told by its finalizer, and nobody else.
            assert "deletionTimestamp" not in still["metadata"]
            await cluster.controllers.start("job")
            await cluster.advance(minutes=10)
            job = await cluster.client.get(JOBS, "sum", "default")
            assert job["status"]["succeeded"] == 2
            assert (await cluster.client.list(PODS, "default")).items == []


@virtual_time
async def test_the_collector_takes_a_pod_when_the_bound_is_over_and_not_at_its_next_try_alone() -> None:
    async with Cluster(nodes=1, controllers=("job", "scheduler")) as cluster:
        await uncounted_pod(cluster)
        first = await jobs_pod(cluster)
        assert first is not None
        name = first["metadata"]["name"]
        async with running(Collector(cluster.client, Settings(policy=JOBS_GO), clock=cluster.clock)):
            # It ended at 00:01:00, and may wait for ten minutes.
            bound = datetime(2030, 1, 1, 0, 11, tzinfo=UTC)
            await cluster.advance(seconds=(bound - cluster.clock.now()).total_seconds() - 1)
            assert "deletionTimestamp" not in (await cluster.client.get(PODS, name, "default"))["metadata"]
            await cluster.advance(seconds=3)
            assert "deletionTimestamp" in (await cluster.client.get(PODS, name, "default"))["metadata"]


@virtual_time
async def test_a_sweep_tells_which_pods_wait_for_their_owner_and_takes_them_after_the_bound() -> None:
    async with Cluster(nodes=1, controllers=("job", "scheduler")) as cluster:
        await uncounted_pod(cluster)
        await cluster.advance(seconds=30)
        settings = Settings(policy=JOBS_GO)
        summary = await GcSession(cluster.client, settings, clock=cluster.clock).execute()
        [waits] = summary.waiting
        assert waits.what == "its Job has not counted it yet"
        assert (sum(summary.outcomes.values()), summary.is_complete) == (0, True)
        await cluster.advance(minutes=10)
        summary = await GcSession(cluster.client, settings, clock=cluster.clock).execute()
        # Its own finalizer holds it still, so that nothing is lost to the Job.
        assert summary.outcomes[Outcome.HELD] == 1


@virtual_time
async def test_a_plan_shows_who_waits_apart_from_who_goes() -> None:
    async with Cluster(nodes=1, controllers=("job", "scheduler")) as cluster:
        await uncounted_pod(cluster)
        await cluster.advance(seconds=30)
        settings = Settings(policy=JOBS_GO)
        plan = await GcSession(cluster.client, settings, clock=cluster.clock).plan()
        assert plan.victims == ()
        shown = format_plan(plan, "table", cluster.clock.now()).splitlines()
        assert shown[0] == "Nothing to collect now in any namespace."
        assert shown[2].split() == ["WAITS", "FOR", "ITS", "OWNER", "RULE", "AT", "MOST", "WHY"]
        [waits] = plan.waiting
        name = waits.victim.pod.key
        assert shown[3].split(maxsplit=3) == [name, "jobs", "9m30s", "its Job has not counted it yet"]
        [told] = plan_as_dict(plan)["waiting"]
        assert (told["rule"], told["until"]) == ("jobs", "2030-01-01T00:11:00Z")
        await cluster.controllers.start("job")
        await cluster.settled()
        plan = await GcSession(cluster.client, settings, clock=cluster.clock).plan()
        assert (len(plan.victims), plan.waiting) == (1, ())


@in_world
async def test_a_pod_that_may_not_be_read_is_not_let_go(world: World) -> None:
    Runs(world)
    pod = await finished(world)
    world.faults.put("GET", "/pods$", answering(403, "Forbidden"))
    with pytest.raises(ForbiddenError):
        await step_of(world)(victim(pod))


@in_world
async def test_what_lets_a_pod_go_is_read_after_the_pod_was(world: World) -> None:
    job = await world.admin.create(JOBS, JOB, "default")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "sum", "controller": True}
    owner["uid"] = job["metadata"]["uid"]
    counted, other = await finished(world, "a", owner), await finished(world, "b", owner)
    step = step_of(world)
    assert await step(victim(counted)) == ""
    uncounted = {"uncountedTerminatedPods": {"succeeded": [other["metadata"]["uid"]]}}
    await world.admin.patch(JOBS, "sum", {"status": uncounted}, "default", subresource="status")
    # What was remembered a moment ago would let it go.
    assert "Job sum has not counted it yet" in await step(victim(other))
