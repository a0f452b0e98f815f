"""The grace of a pod's first delete: what was asked for, what the pod itself has, and when neither counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.graceful_deletion.world import World


async def test_requested_grace_wins_over_the_pods_own(world: World) -> None:
    """GD-01: G given -> G."""
    await world.pod(terminationGracePeriodSeconds=7)
    answer = await world.delete("p", gracePeriodSeconds=15)
    assert answer.meta["deletionGracePeriodSeconds"] == 15
    assert (await world.get("p"))["metadata"]["deletionGracePeriodSeconds"] == 15


async def test_without_a_request_the_pods_own_grace_counts(world: World) -> None:
    """GD-01: G absent -> S."""
    await world.pod(terminationGracePeriodSeconds=7)
    assert (await world.delete("p")).meta["deletionGracePeriodSeconds"] == 7


async def test_pod_that_was_stored_without_any_grace_goes_at_once(world: World) -> None:
    """GD-01: S absent -> 0. Only what skipped defaulting has no grace of its own."""
    await world.pod()
    await world.plant("p", spec={"terminationGracePeriodSeconds": None})
    answer = await world.delete("p")
    assert answer.meta["deletionGracePeriodSeconds"] == 0
    assert await world.is_gone("p")


@pytest.mark.parametrize("options", [{}, {"gracePeriodSeconds": 30}, {"gracePeriodSeconds": -1}])
async def test_unscheduled_pod_goes_at_once_whatever_is_asked(world: World, options: dict[str, Any]) -> None:
    """GD-02. GD-04 too: on an unscheduled pod a negative grace is 0, not 1."""
    await world.pod(node="", terminationGracePeriodSeconds=60)
    answer = await world.delete("p", **options)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert await world.is_gone("p")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
@pytest.mark.parametrize("options", [{}, {"gracePeriodSeconds": 30}])
async def test_pod_that_is_over_goes_at_once_whatever_is_asked(
    world: World, phase: str, options: dict[str, Any]
) -> None:
    """GD-03."""
    await world.pod(phase=phase, terminationGracePeriodSeconds=60)
    answer = await world.delete("p", **options)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert await world.is_gone("p")


async def test_negative_grace_means_one_second(world: World) -> None:
    """GD-04: G=-1 on a scheduled running pod."""
    await world.pod(phase="Running")
    answer = await world.delete("p", gracePeriodSeconds=-1)
    assert answer.meta["deletionGracePeriodSeconds"] == 1
    assert world.seconds_until(answer.meta["deletionTimestamp"]) == 1
    assert (await world.get("p"))["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize(
    ("phase", "node", "grace"),
    [
        pytest.param("Pending", "n", 30, id="GD-05a"),
        pytest.param("Failed", "n", 0, id="GD-05b"),
        pytest.param("Pending", "", 0, id="GD-05c"),
        pytest.param("Succeeded", "", 0, id="GD-05d"),
    ],
)
async def test_thirty_seconds_are_granted_only_where_something_runs(
    world: World, phase: str, node: str, grace: int
) -> None:
    await world.pod(node=node, phase=phase)
    answer = await world.delete("p", gracePeriodSeconds=30)
    assert answer.meta["deletionGracePeriodSeconds"] == grace
    assert await world.is_gone("p") is (grace == 0)


async def test_pod_without_phase_and_node_goes_at_once(world: World) -> None:
    """GD-05e."""
    await world.pod(node="")
    await world.plant("p", status={"phase": None})
    assert (await world.delete("p", gracePeriodSeconds=30)).meta["deletionGracePeriodSeconds"] == 0
    assert await world.is_gone("p")


async def test_pod_created_with_a_negative_grace_gets_one_second(world: World) -> None:
    """GD-05f, as a client can bring it about."""
    await world.pod(terminationGracePeriodSeconds=-1)
    assert (await world.delete("p")).meta["deletionGracePeriodSeconds"] == 1
    assert not await world.is_gone("p")


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


async def test_first_delete_sets_the_time_and_bumps_the_generation(world: World) -> None:
    """GD-07."""
    created = await world.pod(phase="Running")
    await world.delete("p", gracePeriodSeconds=20)
    meta = (await world.get("p"))["metadata"]
    assert world.seconds_until(meta["deletionTimestamp"]) == 20
    assert meta["generation"] == created["metadata"]["generation"] + 1


async def test_generation_that_was_never_set_is_not_bumped(world: World) -> None:
    """GD-07: only a generation above 0 is."""
    await world.pod()
    await world.plant("p", metadata={"generation": None})
    assert "generation" not in (await world.delete("p")).meta


@pytest.mark.parametrize("body", [None, {}, {"kind": "DeleteOptions", "apiVersion": "v1"}])
async def test_nothing_asked_for_is_not_grace_zero(world: World, body: dict[str, str] | None) -> None:
    """GD-08: over HTTP an empty body is empty options. There are no callers without options here: those inside
    the server (the emptying of namespaces) bring options of their own."""
    await world.pod()
    answer = await world.delete("p", body=body)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 30)
    assert not await world.is_gone("p")


async def test_scheduled_pod_with_empty_options_is_marked_with_its_own_thirty_seconds(world: World) -> None:
    """GD-70."""
    created = await world.pod()
    answer = await world.delete("p", body={})
    stored = (await world.get("p"))["metadata"]
    assert answer.code == 200
    assert stored["deletionGracePeriodSeconds"] == 30
    assert world.seconds_until(stored["deletionTimestamp"]) == 30
    assert stored["generation"] > created["metadata"]["generation"]


async def test_grace_longer_than_the_pods_own_is_granted(world: World) -> None:
    """GD-71."""
    await world.pod()
    await world.delete("p", gracePeriodSeconds=32)
    assert (await world.get("p"))["metadata"]["deletionGracePeriodSeconds"] == 32


async def test_zero_after_thirty_ends_the_pod(world: World) -> None:
    """GD-74."""
    created = await world.pod()
    await world.delete("p", gracePeriodSeconds=30)
    answer = await world.delete("p", gracePeriodSeconds=0)
    assert (answer.code, answer.meta["deletionGracePeriodSeconds"]) == (200, 0)
    assert answer.meta["generation"] == created["metadata"]["generation"] + 1
    assert await world.is_gone("p")


async def test_unscheduled_pod_goes_only_for_the_uid_that_is_meant(world: World) -> None:
    """GD-75."""
    created = await world.pod(node="")
    refused = await world.delete("p", preconditions={"uid": "another"})
    assert refused.code == 409
    assert (await world.get("p")) == created
    answer = await world.delete("p", preconditions={"uid": created["metadata"]["uid"]})
    assert answer.code == 200
    assert await world.is_gone("p")


async def test_unscheduled_pod_with_empty_options_goes_at_once(world: World) -> None:
    """GD-75."""
    await world.pod(node="")
    assert (await world.delete("p", body={})).code == 200
    assert await world.is_gone("p")
