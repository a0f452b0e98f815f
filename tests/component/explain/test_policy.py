"""`explain` with a policy: what is foretold is what the collector then does, and what may not be read is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from podlife.cli.commands.gc.output import format_plan
from podlife.client import PODS
from podlife.diagnosis import find_stuck, look_at_pod
from podlife.podgc import GcSession, Settings
from podlife.podgc.policy.model import (
    Keep,
    OwnerWait,
    Per,
    Policy,
    Rule,
)
from podlife.testing import Behaviour, Cluster, pod_gc, virtual_time
from podlife.wire import Request, Response
from tests.component.explain.situation import found
from tests.component.podgc.world import serve
from tests.component.stories.objects import pod
from tests.kit.embedded import refusal

POLICY = Policy(rules=(Rule("ended", ttl_seconds=300, wait_for_owner=OwnerWait(600)),))
KEEPS_ONE = Policy(rules=(Rule("one", keep=Keep(1, Per.NAMESPACE)),))


async def ended(cluster: Cluster, *names: str) -> None:
    cluster.behave(Behaviour(run_seconds=5), image="app")
    for name in names:
        made = pod(name)
        made["spec"]["restartPolicy"] = "Never"
        await cluster.client.create(PODS, made, "default")
        await cluster.advance(seconds=10)


@virtual_time
async def test_the_moment_that_is_foretold_is_the_one_at_which_it_goes() -> None:
    settings = Settings(policy=POLICY)
    async with Cluster(nodes=1, controllers={"gc": pod_gc(settings)}) as cluster:
        await ended(cluster, "web")
        said = await look_at_pod(cluster.client, cluster.clock, "default", "web", settings)
        [upcoming] = said.upcoming
        assert upcoming.who == "podlife gc"
        assert upcoming.what.startswith("deletes it by rule ended (expired: ended at ")
        assert upcoming.at is not None
        left = upcoming.at - cluster.clock.now()
        assert timedelta(minutes=4) < left <= timedelta(minutes=5)
        await cluster.advance(seconds=left.total_seconds() - 1)
        assert await found(cluster) is not None
        await cluster.advance(seconds=2)
        assert await found(cluster) is None


@virtual_time
async def test_a_rule_that_keeps_some_is_decided_on_all_pods_there_are() -> None:
    settings = Settings(policy=KEEPS_ONE)
    async with Cluster(nodes=1, controllers=()) as cluster:
        await ended(cluster, "old", "young")
        old = await look_at_pod(cluster.client, cluster.clock, "default", "old", settings)
        assert "by rule one (surplus: 2 ended pods in its namespace, 1 may stay)" in old.upcoming[0].what
        young = await look_at_pod(cluster.client, cluster.clock, "default", "young", settings)
        assert young.upcoming[0].what == "has it under rule one, which lets it go at no time as things are"


@virtual_time
async def test_where_all_pods_may_not_be_read_the_rest_is_explained_and_that_is_told(tmp_path: Path) -> None:
    settings = Settings(policy=POLICY)
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("p", phase="Succeeded")

        async def refused(request: Request) -> Response:
            return refusal(403, "Forbidden")

        world.faults.put("GET", "^/api/v1/namespaces$", refused)
        said = await look_at_pod(world.client, world.clock, "default", "p", settings)
        assert said.stage == "ended (Succeeded)"
        told = "all pods, nodes and namespaces, for the policy (403 Forbidden)"
        assert told in said.unread
        read, _ = await find_stuck(world.client, world.clock, "default", settings)
        assert told in read.unread


@virtual_time
@pytest.mark.parametrize("ended_at", ["9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z"])
async def test_an_end_that_no_calendar_reaches_is_explained_and_planned_for(
    tmp_path: Path, ended_at: str
) -> None:
    """Whoever may write a status may write any moment into it."""
    settings = Settings(policy=Policy(rules=(Rule("ended", ttl_seconds=86_400 * 365),)))
    async with serve(tmp_path) as world:
        await world.node()
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": ended_at}
        await world.pod("p", phase="Succeeded", conditions=[ready])
        said = await look_at_pod(world.client, world.clock, "default", "p", settings)
        assert said.stage == "ended (Succeeded)"
        plan = await GcSession(world.client, settings, clock=world.clock).plan()
        assert plan.victims == ()
        for output in ("table", "json"):
            assert format_plan(plan, output, world.clock.now())
