"""A whole cluster under virtual time, as the page sees it: what is predicted happens, by the hand that was named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.client import DEPLOYMENTS, PODS, DeleteOptions
from podlife.diagnosis import acting_rules
from podlife.podgc import Settings, read_policy
from podlife.testing import Behaviour, Cluster, FaultInjection, pod_gc, virtual_time
from podlife.testing.controllers import chosen
from podlife.ui.feed import LiveFeed
from podlife.ui.life import Life, NodeLife, PodLife
from podlife.ui.lives import Lives
from podlife.ui.observer import Observer
from podlife.ui.policy import follow_policy
from tests.component.stories.objects import workload


class Seen:
    def __init__(self, lives: Lives, feed: LiveFeed, faults: FaultInjection) -> None:
        self.lives = lives
        self.feed = feed
        self.faults = faults

    def all(self, name: str) -> list[Life]:
        found = [life for uid in self.lives.uids if (life := self.lives.get(uid)) is not None]
        return [life for life in found if life.name.startswith(name)]

    def pod(self, name: str) -> PodLife:
        life = self.all(name)[-1]
        assert isinstance(life, PodLife)
        return life

    def node(self, name: str) -> NodeLife:
        [life] = [life for life in self.all(name) if isinstance(life, NodeLife)]
        return life


@asynccontextmanager
async def observed(cluster: Cluster) -> AsyncIterator[Seen]:
    lives = Lives(acting_rules())
    client, faults = cluster.connect("ui")
    observer = Observer(client, cluster.clock, lives)
    feed = LiveFeed(lives, observer, cluster.clock, {})
    async with client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(observer.run()), group.create_task(feed.run())]
        await cluster.advance(seconds=2)
        assert feed.is_complete
        yield Seen(lives, feed, faults)
        for task in tasks:
            task.cancel()


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def states(life: Life) -> list[str]:
    return [state for _, state in life.segs]


@virtual_time
async def test_a_stubborn_pod_is_killed_when_its_grace_ends_as_predicted() -> None:
    async with Cluster(nodes=1) as cluster, observed(cluster) as seen:
        cluster.behave(Behaviour(stop_seconds=None))
        await cluster.client.create(PODS, a_pod("web", terminationGracePeriodSeconds=20), "default")
        await cluster.advance(seconds=10)
        life = seen.pod("web")
        assert (life.state, life.ready) == ("ready", "1/1")
        await cluster.client.delete(PODS, "web", "default", options=DeleteOptions())
        await cluster.advance(seconds=5)
        [kill] = life.next
        assert (life.state, kill.state, life.grace) == ("terminating", "due", 20)
        assert kill.at is not None
        await cluster.advance(seconds=20)
        assert (life.stage, kill.state) == ("gone", "happened")
        assert abs((kill.until or 0) - kill.at) < 3_000
        kinds = [mark[1] for mark in life.marks]
        steps = [each for each in kinds if each in ("delete", "term", "kill", "gone")]
        assert list(dict.fromkeys(steps)) == ["delete", "term", "kill", "gone"]


@virtual_time
async def test_a_dead_node_its_silence_its_taint_and_the_evictions_that_follow() -> None:
    async with Cluster(nodes=2) as cluster, observed(cluster) as seen:
        await cluster.client.create(DEPLOYMENTS, workload("web", 1), "default")
        await cluster.advance(seconds=10)
        first = seen.pod("web")
        assert first.owner is not None
        assert (first.owner.kind, first.owner.name) == ("Deployment", "web")
        await cluster.node(first.node).power_off()
        await cluster.advance(seconds=90)
        node = seen.node(first.node)
        assert node.state == "unknown"
        assert any("unreachable:NoExecute" in taint for taint in node.taints)
        eviction = next(each for each in first.next if each.who == "taint eviction")
        assert (eviction.state, first.stuck) == ("due", "node-not-ready")
        await cluster.advance(minutes=5)
        assert eviction.state == "happened"
        assert first.state == "terminating"
        second = seen.pod("web")
        assert (second.uid != first.uid, second.state) == (True, "ready")
        assert second.node != first.node


POLICY = """\
apiVersion: podlife.dev/v1
kind: PodGCPolicy
rules: [{name: done, select: {phase: [Succeeded]}, ttlAfterFinished: 2m}]
"""


@virtual_time
async def test_a_rule_of_the_policy_is_predicted_and_the_collector_acts_by_it() -> None:
    settings = Settings(policy=read_policy(POLICY, "policy"))
    makes = {**chosen(("scheduler",)), "podlife-gc": pod_gc(settings)}
    async with Cluster(1, makes) as cluster, observed(cluster) as seen, asyncio.TaskGroup() as group:
        task = group.create_task(follow_policy(cluster.client, cluster.clock, settings, seen.lives))
        cluster.behave(Behaviour(run_seconds=10))
        await cluster.client.create(PODS, a_pod("job", restartPolicy="Never"), "default")
        await cluster.advance(seconds=25)
        life = seen.pod("job")
        [deletion] = [each for each in life.next if each.at is not None]
        assert (life.state, deletion.who, "rule done" in deletion.what) == ("succeeded", "podlife gc", True)
        ended_at = life.segs[-1][0]
        assert abs((deletion.at or 0) - ended_at - 120_000) < 2_000
        await cluster.advance(seconds=120)
        assert (deletion.state, life.stage) == ("happened", "gone")
        task.cancel()


@virtual_time
async def test_a_pod_created_again_under_its_name_has_two_lives() -> None:
    async with Cluster(nodes=1) as cluster, observed(cluster) as seen:
        for _ in range(2):
            await cluster.client.create(PODS, a_pod("web"), "default")
            await cluster.advance(seconds=5)
            await cluster.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
            await cluster.advance(seconds=5)
        first, second = seen.all("web")
        assert first.to is not None
        assert second.to is not None
        assert first.to <= second.start + 1_000
        assert states(first)[:3] == ["pending", "starting", "ready"]


@virtual_time
async def test_the_page_goes_on_after_an_outage_and_knows_what_went_meanwhile() -> None:
    async with Cluster(nodes=1) as cluster, observed(cluster) as seen:
        for name in ("stays", "goes"):
            await cluster.client.create(PODS, a_pod(name), "default")
        await cluster.advance(seconds=5)
        seen.faults.cut()
        await cluster.client.delete(PODS, "goes", "default", options=DeleteOptions(grace_period_seconds=0))
        await cluster.client.create(PODS, a_pod("comes"), "default")
        await cluster.advance(seconds=20)
        assert statuses(seen)[-1]["live"] is False
        assert (seen.pod("goes").to, seen.all("comes")) == (None, [])
        seen.faults.restore()
        await cluster.advance(minutes=1)
        assert statuses(seen)[-1]["live"] is True
        assert (seen.pod("goes").stage, seen.pod("comes").state) == ("gone", "ready")
        assert seen.pod("stays").to is None


@virtual_time
async def test_a_server_that_hangs_is_noticed_soon_and_makes_no_node_silent() -> None:
    async with Cluster(nodes=2) as cluster, observed(cluster) as seen:
        await cluster.advance(seconds=30)
        before = {name: list(seen.node(name).segs) for name in ("n1", "n2")}
        seen.faults.stall()
        await cluster.advance(seconds=25)
        assert statuses(seen)[-1]["live"] is False
        await cluster.advance(minutes=2)
        seen.faults.resume()
        await cluster.advance(minutes=2)
        assert statuses(seen)[-1]["live"] is True
        assert {name: seen.node(name).segs for name in before} == before


def statuses(seen: Seen) -> list[dict[str, Any]]:
    frames = seen.feed.journal.since(0)
    assert frames is not None
    return [json.loads(frame.data) for frame in frames if frame.event == "status"]
