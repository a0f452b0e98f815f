"""Kinds that know no grace, dependents, and collections."""

from __future__ import annotations

import pytest

from podlife.api.codec import format_time
from tests.conformance.graceful_deletion.conftest import on_both_stores
from tests.conformance.graceful_deletion.world import World

HELD = {"finalizers": ["example.com/held"]}
BUDGET = {"spec": {"selector": {"matchLabels": {"app": "a"}}}}


async def test_object_without_grace_and_finalizers_is_removed_directly(world: World) -> None:
    """GD-59: no mark is written first, whatever grace is asked for."""
    created = await world.create("configmaps", {"metadata": {"name": "m"}})
    assert (await world.delete("m", resource="configmaps", gracePeriodSeconds=30)).code == 200
    assert await world.is_gone("m", "configmaps")
    [deleted] = await world.events(created, resource="configmaps", name="m")
    assert deleted.type == "DELETED"
    assert "deletionTimestamp" not in deleted.meta


async def test_object_without_grace_but_with_finalizers_is_marked_as_of_now(world: World) -> None:
    """GD-59: and its generation, where it has one, is bumped once."""
    created = await world.create("poddisruptionbudgets", {"metadata": {"name": "b", **HELD}, **BUDGET})
    answer = await world.delete("b", resource="poddisruptionbudgets", gracePeriodSeconds=30)
    assert (answer.code, await world.get_budget()) == (200, answer.body)
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == 0
    assert answer.meta["deletionGracePeriodSeconds"] == 0
    assert answer.meta["generation"] == created["metadata"]["generation"] + 1

    again = await world.delete("b", resource="poddisruptionbudgets")
    assert (again.code, await world.get_budget()) == (200, answer.body)
    released = await world.patch("b", {"metadata": {"finalizers": None}}, resource="poddisruptionbudgets")
    assert released.code == 200
    assert await world.is_gone("b", "poddisruptionbudgets")


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, 0), (60, 0), (-60, -60)],
    ids=["unset is now", "future is now", "past is kept"],
)
async def test_mark_is_never_moved_into_the_future_nor_out_of_the_past(
    world: World, before: int | None, after: int
) -> None:
    """GD-60."""
    world.clock.advance(minutes=2)
    await world.create("configmaps", {"metadata": {"name": "m", **HELD}})
    if before is not None:
        moment = world.clock.now().timestamp() + before
        time = format_time(world.clock.now().fromtimestamp(moment, world.clock.now().tzinfo))
        await world.plant("m", resource="configmaps", metadata={"deletionTimestamp": time})
    await world.delete("m", resource="configmaps")
    meta = (await world.get("m", "configmaps"))["metadata"]
    assert world.seconds_until(meta["deletionTimestamp"]) == after
    assert meta["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)],
)
async def test_first_delete_says_what_becomes_of_the_dependents(
    world: World, policy: str, finalizers: list[str] | None
) -> None:
    """GD-61."""
    await world.pod()
    answer = await world.delete("p", propagationPolicy=policy)
    assert answer.meta.get("finalizers") == finalizers
    assert (await world.get("p")) == answer.body


async def test_background_takes_the_propagation_finalizers_away(world: World) -> None:
    """GD-61: set or removed. What is not about dependents stays."""
    await world.pod(metadata={"finalizers": ["example.com/held", "orphan"]})
    answer = await world.delete("p", propagationPolicy="Background")
    assert answer.meta["finalizers"] == ["example.com/held"]


async def test_delete_that_is_pending_can_not_change_the_propagation(world: World) -> None:
    """GD-61."""
    await world.pod()
    marked = (await world.delete("p", propagationPolicy="Foreground")).body
    for policy in ("Orphan", "Background"):
        answer = await world.delete("p", propagationPolicy=policy)
        assert (answer.code, answer.body) == (200, marked)
    assert await world.get("p") == marked


async def test_kind_without_grace_has_nothing_pending_so_its_propagation_can_still_change(
    world: World,
) -> None:
    """GD-61 speaks of a running grace only: each delete of another kind decides anew."""
    await world.create("configmaps", {"metadata": {"name": "m"}})
    await world.delete("m", resource="configmaps", propagationPolicy="Foreground")
    answer = await world.delete("m", resource="configmaps", propagationPolicy="Orphan")
    assert answer.meta["finalizers"] == ["orphan"]
    answer = await world.delete("m", resource="configmaps", propagationPolicy="Background")
    assert answer.code == 200
    assert await world.is_gone("m", "configmaps")


async def test_collection_gives_every_pod_its_own_grace(world: World) -> None:
    """GD-64: what was chosen for one pod must not reach the next through shared options."""
    await world.pod("a", terminationGracePeriodSeconds=7)
    await world.pod("b", node="")
    await world.pod("c", terminationGracePeriodSeconds=9)
    await world.pod("d", phase="Failed")
    await world.pod("e", metadata={"labels": {"app": "other"}})
    answer = await world.delete("", query="?labelSelector=app%3Da")
    assert (answer.code, answer.body["kind"]) == (200, "PodList")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "b", "c", "d"]
    left = (await world.request("GET", world.path("pods"))).body["items"]
    graces = {each["metadata"]["name"]: each["metadata"].get("deletionGracePeriodSeconds") for each in left}
    assert graces == {"a": 7, "c": 9, "e": None}


@on_both_stores
async def test_pod_that_vanishes_meanwhile_does_not_disturb_the_deletion_of_a_collection(
    world: World,
) -> None:
    """GD-64: NotFound of single objects is ignored. The pod goes after it was chosen."""
    await world.pod("p", node="")
    await world.pod("q", node="")
    [answer] = await world.meet([world.delete("")], lambda: world.uproot("p"))
    assert (answer.code, answer.body["kind"]) == (200, "PodList")
    assert (await world.request("GET", world.path("pods"))).body["items"] == []


async def test_first_other_error_ends_the_deletion_of_a_collection(world: World) -> None:
    """GD-64: here the UID that only one of them has."""
    pods = [await world.pod(name) for name in ("a", "b", "c")]
    answer = await world.delete("", preconditions={"uid": pods[0]["metadata"]["uid"]})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert await world.is_going("a")
    assert [await world.get("b"), await world.get("c")] == pods[1:]
