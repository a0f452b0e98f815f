"""Chance plays with a whole cluster under virtual time; when it is calm again, everything is as somebody wishes it.

A few seeds run with the other tests; PODLIFE_CHAOS_SEEDS=1000 runs so many (200-299 those), PODLIFE_CHAOS_SEED=17 that
one again.
"""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from podlife.client import PODS, Client, DeleteOptions
from podlife.testing import Cluster, function, virtual_time
from tests.component.chaos.calm import complaints
from tests.component.chaos.storm import Storm
from tests.component.chaos.watching import judged, watch_starts
from tests.kit.objects import pod

STORM_SECONDS = 240.0
# How long everything may take to come right again: longer than any wait that a rule has.
CALM_SECONDS = 1800.0
LOOK_SECONDS = 15.0
STEADY_SECONDS = 60.0


def seeds() -> list[int]:
    if one := os.environ.get("PODLIFE_CHAOS_SEED"):
        return [int(one)]
    first, _, last = (os.environ.get("PODLIFE_CHAOS_SEEDS") or "3").rpartition("-")
    return list(range(int(first), int(last) + 1)) if first else list(range(int(last)))


@pytest.mark.parametrize("seed", seeds())
@virtual_time
async def test_after_the_storm_all_that_is_wanted_is_there_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    faults: list[str] = []
    async with Cluster(nodes=3, seed=seed, toleration_seconds=chance.choice((5, 30, 90))) as cluster:
        watch_starts(cluster, faults)
        storm = Storm(cluster, chance)
        async with judged(cluster, faults, chance):
            await storm.prepare()
            await cluster.advance(seconds=chance.choice((1.0, 30.0)))
            await storm.rage(STORM_SECONDS)
            await storm.calm()
            left = await _wait_for_calm(cluster, storm)
    if faults or left:
        told = "\n  ".join(storm.told)
        wrong = "\n  ".join((*faults, *left))
        pytest.fail(
            f"{wrong}\nafter\n  {told}\nreplay: PODLIFE_CHAOS_SEED={seed} pytest {__file__}", pytrace=False
        )


async def _wait_for_calm(cluster: Cluster, storm: Storm) -> list[str]:
    """What is wrong in the end, or does not stay right."""
    end = cluster.time + CALM_SECONDS
    await storm.make_what_is_missing()
    while left := await complaints(cluster):
        if cluster.time > end:
            return left
        await cluster.advance(seconds=LOOK_SECONDS)
        await storm.make_what_is_missing()
    await cluster.advance(seconds=STEADY_SECONDS)
    return [f"did not last: {each}" for each in await complaints(cluster)]


# Those who watch over the chaos: what no rule covers does not get past them.


@virtual_time
async def test_a_deletion_without_a_reason_or_without_a_uid_is_a_fault() -> None:
    async def rogue(client: Client) -> None:
        await asyncio.sleep(30)
        uid = (await client.get(PODS, "a", "default"))["metadata"]["uid"]
        await client.delete(PODS, "a", "default", options=DeleteOptions(uid=uid))
        await client.delete(PODS, "b", "default")
        await asyncio.Event().wait()

    faults: list[str] = []
    async with (
        Cluster(controllers={"rogue": function(rogue)}) as cluster,
        judged(cluster, faults, random.Random(0)),
    ):
        for name in ("a", "b", "c"):
            await cluster.client.create(PODS, pod(name, nodeName="n1"), "default")
        await cluster.advance(seconds=20)
        # What a user asks for, and what the node then does for it, has its rule.
        await cluster.client.delete(PODS, "c", "default")
        await cluster.advance(seconds=60)
        assert (await cluster.client.list(PODS, "default")).items == []
    assert [fault.partition(":")[0] for fault in faults] == [
        "rogue deleted a, which no rule covers",
        "rogue deleted b without naming its UID",
        "rogue deleted b, which no rule covers",
    ]


@virtual_time
async def test_an_ordinal_that_runs_at_two_places_is_a_fault() -> None:
    faults: list[str] = []
    async with Cluster(nodes=2, controllers=()) as cluster:
        watch_starts(cluster, faults)
        await cluster.client.create(PODS, pod("db-0", nodeName="n1"), "default")
        await cluster.settled()
        assert faults == []
        await cluster.node("n1").stop()
        await cluster.client.delete(PODS, "db-0", "default", options=DeleteOptions(grace_period_seconds=0))
        await cluster.client.create(PODS, pod("db-0", nodeName="n2"), "default")
        await cluster.settled()
    assert faults == ["db-0 is made while another of it runs on n1"]


@virtual_time
async def test_a_container_without_a_pod_is_complained_about() -> None:
    async with Cluster(controllers=()) as cluster:
        await cluster.client.create(PODS, pod("web", nodeName="n1"), "default")
        await cluster.settled()
        await cluster.node("n1").stop()
        await cluster.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
        assert "web/main runs on n1, and there is no such pod" in await complaints(cluster)
        await cluster.node("n1").start()
        await cluster.advance(seconds=30)
        assert not [each for each in await complaints(cluster) if "web/main" in each]
