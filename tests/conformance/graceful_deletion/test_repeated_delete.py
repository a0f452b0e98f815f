"""A delete of what is being deleted already: the grace that is running can only become shorter."""

from __future__ import annotations

import pytest

from podlife.api.codec import Object, format_time
from tests.conformance.graceful_deletion.world import World

HELD = {"finalizers": ["example.com/held"]}


@pytest.mark.parametrize("grace", [None, 0])
async def test_pod_that_a_half_done_removal_left_behind_is_removed_by_the_next_delete(
    world: World, grace: int | None
) -> None:
    """GD-10: a mark without a running grace. Here a removal happens whole or not at all, but what another
    server has left behind must still be finished. Nothing is written first: the removal is all there is."""
    await world.pod()
    now = format_time(world.clock.now())
    left = await world.plant("p", metadata={"deletionTimestamp": now, "deletionGracePeriodSeconds": grace})
    assert (await world.delete("p", gracePeriodSeconds=30)).code == 200
    assert await world.is_gone("p")
    assert [seen.type for seen in await world.events(left)] == ["DELETED"]


async def test_pod_whose_grace_is_over_still_waits_for_its_finalizers(world: World) -> None:
    """GD-10: removed only if there are no finalizers; and saying it again writes nothing."""
    await world.pod(metadata=HELD)
    await world.delete("p", gracePeriodSeconds=0)
    marked = await world.get("p")
    assert (await world.delete("p", gracePeriodSeconds=0)).code == 200
    assert await world.get("p") == marked


async def test_shorter_grace_counts_from_the_first_request(world: World) -> None:
    """GD-13."""
    await world.pod()
    first = await world.delete("p", gracePeriodSeconds=30)
    world.clock.advance(seconds=4)
    await world.delete("p", gracePeriodSeconds=10)
    meta = (await world.get("p"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 10
    assert world.seconds_until(meta["deletionTimestamp"]) == 6
    assert meta["generation"] == first.meta["generation"]


async def test_shorter_grace_that_is_already_over_leaves_one_second_from_now(world: World) -> None:
    """GD-14: somebody must still see it and finish it, so a request that is not 0 removes nothing itself."""
    await world.pod()
    await world.delete("p", gracePeriodSeconds=30)
    world.clock.advance(seconds=20)
    await world.delete("p", gracePeriodSeconds=10)
    meta = (await world.get("p"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 1
    assert world.seconds_until(meta["deletionTimestamp"]) == 0


async def test_zero_after_the_grace_is_over_means_now(world: World) -> None:
    """GD-14: a request of 0 gives 0. A finalizer keeps the pod, to be looked at."""
    await world.pod(metadata=HELD)
    await world.delete("p", gracePeriodSeconds=30)
    world.clock.advance(seconds=20)
    await world.delete("p", gracePeriodSeconds=0)
    meta = (await world.get("p"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 0
    assert world.seconds_until(meta["deletionTimestamp"]) == 0


async def test_negative_grace_in_the_store_is_one_second(world: World) -> None:
    """GD-15: a request of 1 is then not shorter, a request of 0 is."""
    await world.pod()
    soon = format_time(world.clock.now())
    left = await world.plant("p", metadata={"deletionTimestamp": soon, "deletionGracePeriodSeconds": -5})
    assert (await world.delete("p", gracePeriodSeconds=1)).meta["deletionGracePeriodSeconds"] == 1
    assert await world.get("p") == left
    await world.delete("p", gracePeriodSeconds=0)
    assert await world.is_gone("p")


@pytest.mark.parametrize(
    ("running", "requested", "shown"),
    [
        pytest.param(20, None, 20, id="GD-11: no grace asked for"),
        pytest.param(20, 20, 20, id="GD-12: the same is not shorter"),
        pytest.param(20, 21, 20, id="GD-12: longer"),
        pytest.param(20, 3600, 20, id="GD-12: much longer"),
        pytest.param(-1, -1, 1, id="GD-16"),
        pytest.param(-1, 1, 1, id="GD-18"),
        pytest.param(-1, 2, 1, id="GD-19"),
        pytest.param(1, -1, 1, id="GD-24"),
        pytest.param(1, 2, 1, id="GD-27"),
        pytest.param(2, 2, 2, id="GD-31"),
    ],
)
async def test_request_that_is_not_shorter_changes_nothing(
    world: World, running: int, requested: int | None, shown: int
) -> None:
    """GD-54: it succeeds and writes nothing."""
    await _pod_with_running_grace(world, running)
    before = await world.get("p")
    options: Object = {} if requested is None else {"gracePeriodSeconds": requested}
    answer = await world.delete("p", **options)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, shown)
    assert await world.get("p") == before
    assert await world.events(before) == []


@pytest.mark.parametrize(
    "requested",
    [pytest.param(0, id="GD-21"), pytest.param(1, id="GD-22"), pytest.param(2, id="GD-23")],
)
async def test_grace_that_is_over_is_not_given_again(world: World, requested: int) -> None:
    await _pod_with_running_grace(world, 0)
    before = await world.get("p")
    answer = await world.delete("p", gracePeriodSeconds=requested)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert await world.is_gone("p")
    assert [seen.type for seen in await world.events(before)] == ["DELETED"]


@pytest.mark.parametrize(
    ("running", "requested", "left"),
    [
        pytest.param(30, 10, 10, id="GD-13: one write, and no other generation"),
        pytest.param(30, 0, 0, id="GD-74"),
        pytest.param(1, 0, 0, id="GD-25"),
        pytest.param(2, 0, 0, id="GD-29"),
        pytest.param(2, 1, 1, id="GD-30"),
    ],
)
async def test_shorter_request_shortens(world: World, running: int, requested: int, left: int) -> None:
    await world.pod()
    before = (await world.delete("p", gracePeriodSeconds=running)).body
    answer = await world.delete("p", gracePeriodSeconds=requested)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, left)
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == left
    seen = await world.events(before)
    assert seen[0].type == "MODIFIED"
    assert seen[0].meta["deletionGracePeriodSeconds"] == left
    assert seen[0].meta["generation"] == answer.meta["generation"] == before["metadata"]["generation"]
    assert [event.type for event in seen[1:]] == ([] if left else ["DELETED"])
    assert await world.is_gone("p") is (left == 0)


async def test_zero_for_a_pod_whose_grace_ended_a_minute_ago_says_now(world: World) -> None:
    """GD-33."""
    await world.pod()
    before = (await world.delete("p", gracePeriodSeconds=60)).body
    world.clock.advance(minutes=2)
    answer = await world.delete("p", gracePeriodSeconds=0)
    modified, deleted = await world.events(before)
    assert (modified.type, deleted.type) == ("MODIFIED", "DELETED")
    for meta in (answer.meta, modified.meta, deleted.meta):
        assert meta["deletionGracePeriodSeconds"] == 0
        assert world.seconds_until(meta["deletionTimestamp"]) == 0


async def test_pod_on_a_node_without_an_agent_stays_terminating(world: World) -> None:
    """Nobody but the agent sends the last delete, however long the grace is over and however often it is asked
    for; a user can still force it."""
    await world.pod(phase="Running", is_ready=True)
    marked = (await world.delete("p", gracePeriodSeconds=30)).body
    for _ in range(3):
        world.clock.advance(minutes=60)
        assert (await world.delete("p", gracePeriodSeconds=30)).code == 200
        assert await world.get("p") == marked
    assert (await world.delete("p", gracePeriodSeconds=0)).code == 200
    assert await world.is_gone("p")


async def _pod_with_running_grace(world: World, seconds: int) -> None:
    """A pod that is being deleted; a grace that no request can bring about is put into the store."""
    await world.pod()
    await world.delete("p", gracePeriodSeconds=max(seconds, 1))
    if seconds <= 0:
        await world.plant("p", metadata={"deletionGracePeriodSeconds": seconds})
