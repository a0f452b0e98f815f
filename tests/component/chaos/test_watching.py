"""Those who watch over the chaos: what no rule covers does not get past them."""

from __future__ import annotations

import asyncio
import random

from podlife.aio import cancel_and_wait
from podlife.client import PODS, Client, DeleteOptions
from podlife.testing import Cluster, function, virtual_time
from tests.component.chaos.calm import complaints
from tests.component.chaos.mirror import Mirror
from tests.component.chaos.watching import Judge, Starts

SPEC = {"nodeName": "n1", "containers": [{"name": "main", "image": "app"}]}


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": SPEC}


@virtual_time
async def test_a_deletion_without_a_reason_or_without_a_uid_is_a_fault() -> None:
    async def rogue(client: Client) -> None:
        await asyncio.sleep(30)
        uid = (await client.get(PODS, "a", "default"))["metadata"]["uid"]
        await client.delete(PODS, "a", "default", options=DeleteOptions(uid=uid))
        await client.delete(PODS, "b", "default")
        await asyncio.Event().wait()

    faults: list[str] = []
    async with Cluster(controllers={"rogue": function(rogue)}) as cluster:
        beside, _ = cluster.connect("mirror", is_beside=True)
        mirror = Mirror(beside)
        following = asyncio.get_running_loop().create_task(mirror.run())
        cluster.api.disturb = Judge(mirror, beside, faults, random.Random(0))
        for name in ("a", "b", "c"):
            await cluster.client.create(PODS, pod(name), "default")
        await cluster.advance(seconds=20)
        # What a user asks for, and what the node then does for it, has its rule.
        await cluster.client.delete(PODS, "c", "default")
        await cluster.advance(seconds=60)
        assert (await cluster.client.list(PODS, "default")).items == []
        await cancel_and_wait(following)
        await beside.close()
    assert [fault.partition(":")[0] for fault in faults] == [
        "rogue deleted a, which no rule covers",
        "rogue deleted b without naming its UID",
        "rogue deleted b, which no rule covers",
    ]


@virtual_time
async def test_an_ordinal_that_runs_at_two_places_is_a_fault() -> None:
    faults: list[str] = []
    async with Cluster(nodes=2, controllers=()) as cluster:
        for node in cluster.nodes.values():
            node.machine.script = Starts(cluster, faults).over(node.machine.script)
        await cluster.client.create(PODS, pod("db-0"), "default")
        await cluster.settled()
        assert faults == []
        await cluster.node("n1").stop()
        await cluster.client.delete(PODS, "db-0", "default", options=DeleteOptions(grace_period_seconds=0))
        elsewhere = {"metadata": {"name": "db-0"}, "spec": {**SPEC, "nodeName": "n2"}}
        await cluster.client.create(PODS, elsewhere, "default")
        await cluster.settled()
    assert faults == ["db-0 is made while another of it runs on n1"]


@virtual_time
async def test_a_container_without_a_pod_is_complained_about() -> None:
    async with Cluster(controllers=()) as cluster:
        await cluster.client.create(PODS, pod("web"), "default")
        await cluster.settled()
        await cluster.node("n1").stop()
        await cluster.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
        assert "web/main runs on n1, and there is no such pod" in await complaints(cluster)
        await cluster.node("n1").start()
        await cluster.advance(seconds=30)
        assert not [each for each in await complaints(cluster) if "web/main" in each]
