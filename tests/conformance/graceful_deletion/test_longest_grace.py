"""A grace that reaches past the last moment that can be written: any int64 is a valid one."""

from __future__ import annotations

import pytest

from tests.conformance.graceful_deletion.world import World

LAST = "9999-12-31T23:59:59Z"
LONG = 300_000_000_000
GRACES = [LONG, 2**63 - 1]


@pytest.mark.parametrize("grace", GRACES)
async def test_a_grace_beyond_all_time_is_kept_and_ends_at_the_last_moment(world: World, grace: int) -> None:
    """GD-01: S counts, however long it is."""
    await world.pod(terminationGracePeriodSeconds=grace)
    answer = await world.delete("p")
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, grace)
    assert answer.meta["deletionTimestamp"] == LAST


async def test_a_requested_grace_beyond_all_time_is_granted(world: World) -> None:
    """GD-01: G given -> G."""
    await world.pod()
    answer = await world.delete("p", gracePeriodSeconds=LONG)
    assert (answer.code, answer.meta["deletionTimestamp"]) == (200, LAST)


async def test_eviction_and_collection_delete_of_a_pod_with_such_a_grace_succeed(world: World) -> None:
    """GD-64, EV-01."""
    await world.pod("p", terminationGracePeriodSeconds=LONG)
    await world.pod("q", terminationGracePeriodSeconds=LONG)
    assert (await world.evict("p")).code == 201
    assert (await world.request("DELETE", world.path("pods"))).code == 200
    assert (await world.get("q"))["metadata"]["deletionTimestamp"] == LAST


@pytest.mark.parametrize("grace", GRACES)
async def test_shortened_it_counts_from_the_shortening(world: World, grace: int) -> None:
    """GD-13: from the first request, but nobody can tell any more when that was."""
    await world.pod()
    await world.delete("p", gracePeriodSeconds=grace)
    world.clock.advance(seconds=100)
    answer = await world.delete("p", gracePeriodSeconds=30)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 30)
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == 30
    assert (await world.delete("p", gracePeriodSeconds=0)).code == 200
    assert await world.is_gone("p")
