"""Chance plays with a whole cluster under virtual time; when it is calm again, everything is as somebody wishes it.

A few seeds run with the other tests; PODLIFE_CHAOS_SEEDS=1000 runs so many (200-299 those), PODLIFE_CHAOS_SEED=17 that
one again.
"""

from __future__ import annotations

import asyncio
import os
import random

import pytest

from podlife.aio import cancel_and_wait
from podlife.testing import Cluster, virtual_time
from tests.component.chaos.calm import complaints
from tests.component.chaos.mirror import Mirror
from tests.component.chaos.storm import Storm
from tests.component.chaos.watching import Judge, Starts

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
        for node in cluster.nodes.values():
            node.machine.script = Starts(cluster, faults).over(node.machine.script)
        storm = Storm(cluster, chance)
        # They see what is there as it is, whatever happens to the others.
        beside, _ = cluster.connect("mirror", is_beside=True)
        mirror = Mirror(beside)
        following = asyncio.get_running_loop().create_task(mirror.run())
        cluster.api.disturb = Judge(mirror, beside, faults, chance)
        await storm.prepare()
        await cluster.advance(seconds=chance.choice((1.0, 30.0)))
        await storm.rage(STORM_SECONDS)
        await storm.calm()
        left = await _wait_for_calm(cluster, storm)
        await cancel_and_wait(following)
        await beside.close()
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
