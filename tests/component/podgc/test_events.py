"""Who deleted my pod, and why: an Event on the pod's owner, or on its namespace."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podlife.api.codec import Object
from podlife.client import EVENTS, REPLICA_SETS
from podlife.events import Recorder
from podlife.podgc import Collector, Settings
from podlife.podgc.policy import Policy
from podlife.podgc.policy.model import Rule, Selector
from podlife.testing import virtual_time
from tests.component.podgc.world import World, running, serve

REPLICA_SET: Object = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


async def collect_and_tell(world: World, settings: Settings) -> list[Object]:
    recorder = Recorder(world.admin, "podlife-gc", clock=world.clock)
    collector = Collector(world.client, settings, clock=world.clock, recorder=recorder)
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(recorder.run())
        async with running(collector):
            await asyncio.sleep(5)
        assert await recorder.flush(seconds=5)
        sending.cancel()
    page = await world.admin.list(EVENTS, "default")
    return page.items


@virtual_time
async def test_the_owner_of_a_collected_pod_is_told(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        owner = await world.admin.create(REPLICA_SETS, REPLICA_SET, "default")
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        await world.pod("web-1", phase="Failed", owner=reference)
        await world.pod("web-2", phase="Failed", owner=reference)
        [event] = await collect_and_tell(world, Settings(threshold=1))
        about = event["involvedObject"]
        assert (about["kind"], about["name"], about["uid"]) == ("ReplicaSet", "web", owner["metadata"]["uid"])
        assert event["reason"] == "PodGarbageCollected"
        assert event["message"] == (
            "podlife-gc deleted pod web-1 (terminated): 2 terminated pods, 1 may stay; the oldest go first"
        )
        assert event["source"]["component"] == "podlife-gc"


@virtual_time
async def test_the_namespace_of_a_pod_without_an_owner_is_told_with_what_holds_it(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.pod("a", node="", is_terminating=True, finalizers=("example.com/hold",))
        [event] = await collect_and_tell(world, Settings())
        about = event["involvedObject"]
        assert (about["kind"], about["name"]) == ("Namespace", "default")
        assert event["message"].endswith("was never scheduled; held by example.com/hold")


@virtual_time
async def test_the_rule_of_the_policy_is_named_and_upstreams_is_the_reason_alone(tmp_path: Path) -> None:
    policy = Policy((Rule("brief", Selector(phases=("Failed",)), ttl_seconds=0),))
    async with serve(tmp_path) as world:
        await world.node()
        await world.pod("a", phase="Failed")
        await world.pod("b", node="", is_terminating=True)
        events = await collect_and_tell(world, Settings(policy=policy))
        told = sorted(event["message"].partition(":")[0] for event in events)
        assert told == [
            "podlife-gc deleted pod a (expired, rule brief)",
            "podlife-gc deleted pod b (unscheduled)",
        ]
