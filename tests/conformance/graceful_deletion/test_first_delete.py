"""The grace of a pod's first delete: what was asked for, what the pod itself has, and when neither counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.graceful_deletion.world import World

LAST = "9999-12-31T23:59:59Z"
LONG = 300_000_000_000
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("own", "options", "grace"),
    [
        pytest.param(7, {"gracePeriodSeconds": 15}, 15, id="GD-01: G given -> G"),
        pytest.param(7, {}, 7, id="GD-01: G absent -> S"),
        pytest.param(30, {"gracePeriodSeconds": -1}, 1, id="GD-04: G=-1 on a scheduled pod"),
        pytest.param(-1, {}, 1, id="GD-05f: created with a negative grace"),
        pytest.param(60, {"gracePeriodSeconds": 30}, 30, id="GD-05a: pending, on a node"),
        pytest.param(30, {"gracePeriodSeconds": 32}, 32, id="GD-71: longer than the pod's own"),
        pytest.param(30, {"body": {}}, 30, id="GD-70: empty options"),
        # There are no callers without options here: the emptying of namespaces brings options of its own.
        pytest.param(30, {"body": OPTIONS}, 30, id="GD-08: options that ask for nothing"),
        # Any int64 is a valid grace; this one reaches past the last moment that can be written.
        pytest.param(LONG, {}, LONG, id="GD-01: S beyond all time"),
        pytest.param(2**63 - 1, {}, 2**63 - 1, id="GD-01: the longest S"),
        pytest.param(30, {"gracePeriodSeconds": LONG}, LONG, id="GD-01: G beyond all time"),
    ],
)
async def test_scheduled_pod_is_marked_with_the_requested_grace_or_else_its_own(
    world: World, own: int, options: dict[str, Any], grace: int
) -> None:
    """GD-07: the first delete sets the time and bumps the generation."""
    created = await world.pod(terminationGracePeriodSeconds=own)
    assert created["status"]["phase"] == "Pending"
    answer = await world.delete("p", **options)
    assert answer.code == 200
    for meta in (answer.meta, (await world.get("p"))["metadata"]):
        assert meta["deletionGracePeriodSeconds"] == grace
        if grace < LONG:
            assert world.seconds_until(meta["deletionTimestamp"]) == grace
        else:
            assert meta["deletionTimestamp"] == LAST
        assert meta["generation"] == created["metadata"]["generation"] + 1


async def test_pod_that_was_stored_without_any_grace_goes_at_once(world: World) -> None:
    """GD-01: S absent -> 0. Only what skipped defaulting has no grace of its own."""
    await world.pod()
    await world.plant("p", spec={"terminationGracePeriodSeconds": None})
    answer = await world.delete("p")
    assert answer.meta["deletionGracePeriodSeconds"] == 0
    assert await world.is_gone("p")


@pytest.mark.parametrize(
    "options", [{}, {"body": {}}, {"gracePeriodSeconds": 30}, {"gracePeriodSeconds": -1}]
)
@pytest.mark.parametrize(
    ("phase", "node"),
    [
        pytest.param("", "", id="GD-02, GD-75: unscheduled"),
        pytest.param("Pending", "", id="GD-05c"),
        pytest.param("Succeeded", "", id="GD-05d"),
        pytest.param("Succeeded", "n", id="GD-03: over"),
        pytest.param("Failed", "n", id="GD-03, GD-05b: over"),
    ],
)
async def test_pod_that_runs_nowhere_goes_at_once_whatever_is_asked(
    world: World, phase: str, node: str, options: dict[str, Any]
) -> None:
    """GD-04 too: on an unscheduled pod a negative grace is 0, not 1."""
    await world.pod(node=node, phase=phase, terminationGracePeriodSeconds=60)
    answer = await world.delete("p", **options)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert await world.is_gone("p")


async def test_pod_without_phase_and_node_goes_at_once(world: World) -> None:
    """GD-05e."""
    await world.pod(node="")
    await world.plant("p", status={"phase": None})
    assert (await world.delete("p", gracePeriodSeconds=30)).meta["deletionGracePeriodSeconds"] == 0
    assert await world.is_gone("p")


async def test_pod_stored_with_a_negative_grace_gets_one_second(world: World) -> None:
    """GD-05f, as an older server may have left it."""
    await world.pod()
    await world.plant("p", spec={"terminationGracePeriodSeconds": -1})
    answer = await world.delete("p")
    assert answer.meta["deletionGracePeriodSeconds"] == 1
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == 1


async def test_chosen_grace_is_what_answer_store_and_watchers_show(world: World) -> None:
    """GD-06. The options that it is also written to are not seen from outside."""
    created = await world.pod(terminationGracePeriodSeconds=7)
    answer = await world.delete("p")
    [marked] = await world.events(created)
    stored = await world.get("p")
    shown = [meta["deletionGracePeriodSeconds"] for meta in (answer.meta, stored["metadata"], marked.meta)]
    assert shown == [7, 7, 7]


async def test_generation_that_was_never_set_is_not_bumped(world: World) -> None:
    """GD-07: only a generation above 0 is."""
    await world.pod()
    await world.plant("p", metadata={"generation": None})
    assert "generation" not in (await world.delete("p")).meta


async def test_unscheduled_pod_goes_only_for_the_uid_that_is_meant(world: World) -> None:
    """GD-75."""
    created = await world.pod(node="")
    refused = await world.delete("p", preconditions={"uid": "another"})
    assert refused.code == 409
    assert (await world.get("p")) == created
    answer = await world.delete("p", preconditions={"uid": created["metadata"]["uid"]})
    assert answer.code == 200
    assert await world.is_gone("p")


async def test_eviction_and_collection_delete_of_a_pod_with_a_grace_beyond_all_time_succeed(
    world: World,
) -> None:
    """GD-64, EV-01."""
    await world.pod("p", terminationGracePeriodSeconds=LONG)
    await world.pod("q", terminationGracePeriodSeconds=LONG)
    assert (await world.evict("p")).code == 201
    assert (await world.request("DELETE", world.path("pods"))).code == 200
    assert (await world.get("q"))["metadata"]["deletionTimestamp"] == LAST


@pytest.mark.parametrize("grace", [LONG, 2**63 - 1])
async def test_grace_beyond_all_time_counts_from_its_shortening(world: World, grace: int) -> None:
    """GD-13: from the first request, but nobody can tell any more when that was."""
    await world.pod()
    await world.delete("p", gracePeriodSeconds=grace)
    world.clock.advance(seconds=100)
    answer = await world.delete("p", gracePeriodSeconds=30)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 30)
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == 30
    assert (await world.delete("p", gracePeriodSeconds=0)).code == 200
    assert await world.is_gone("p")
