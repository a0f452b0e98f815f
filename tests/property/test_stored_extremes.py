"""No stored object can stop a component.

Objects at the ends of every range that the schema allows are stored, through the API and past it, and every component
of a cluster runs over them for more than an hour of virtual time: nothing ends, nothing stumbles, everything still
answers.

`PODLIFE_EXTREMES` is how many clusters are tried with objects drawn at random; with 20 or more every number, moment and
amount of every kind is also tried at each of its ends, of which a short run tries some, and the clusters run longer.
`PODLIFE_EXTREMES_SEED` is the seed of the first random cluster; a test that fails names its own.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

import pytest

from podlife.testing import Cluster, run_virtually
from tests.fuzz.objects import SEEDS
from tests.property.extreme_world import ExtremeWorld, all_in_one, failures_logged
from tests.property.extremes import Extreme, draw_extreme, every_extreme

CLUSTERS = int(os.environ.get("PODLIFE_EXTREMES", "1"))
FIRST_SEED = int(os.environ.get("PODLIFE_EXTREMES_SEED", "0"))
IS_THOROUGH = CLUSTERS >= 20
# Of a cluster: as many take some ten seconds.
OBJECTS = 150
# How long a cluster runs after everything was deleted, 30 minutes after its start. More than an hour in all: events
# expire after an hour, and the longest backoff is 1,000 s. What comes later repeats the same requests.
LAST_MINUTES = 60 if IS_THOROUGH else 35


def run_cluster_over(extremes: Iterable[Extreme]) -> None:
    stored = list(extremes)

    async def run() -> None:
        async with Cluster(nodes=2, controllers={"all": all_in_one}) as cluster:
            world = ExtremeWorld(cluster)
            await world.begin()
            await world.store(stored)
            await world.live(last_minutes=LAST_MINUTES)
            await world.judge()

    with failures_logged() as failures:
        run_virtually(run)
    assert not failures, f"{len(failures)} failures, the first:\n{failures[0]}"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CLUSTERS))
def test_no_combination_of_extremes_stops_a_component(seed: int) -> None:
    # Not drawn by hypothesis, whose first example is the simplest of all, and in a short run the only one.
    drawn = random.Random(seed)
    found = (draw_extreme(drawn) for _ in range(OBJECTS))
    run_cluster_over(each for each in found if each is not None)


def parts() -> list[list[Extreme]]:
    """All single ends of all kinds in parts of a cluster each; of the few that a short run tries the most telling ones:
    what stands at the top of an object, at its outermost ends."""
    every = [each for seed in SEEDS for each in every_extreme(seed)]
    if not IS_THOROUGH:
        every = [each for each in every if each.is_outermost]
    random.Random(1).shuffle(every)
    return [every[start : start + OBJECTS] for start in range(0, len(every), OBJECTS)]


@pytest.mark.parametrize("part", parts(), ids=lambda _: "")
def test_no_end_of_a_range_stops_a_component(part: list[Extreme]) -> None:
    run_cluster_over(part)
