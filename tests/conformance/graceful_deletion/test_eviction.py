"""Evictions where no budget has a say: the request itself, its options, and what is written on the pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.graceful_deletion.conftest import on_both_stores
from tests.conformance.graceful_deletion.world import World

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
OTHER = "99999999-9999-9999-9999-999999999999"


@pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1"])
async def test_eviction_of_either_version_succeeds_with_a_status(world: World, version: str) -> None:
    """EV-01; EV-11: no budget matches; EV-24: without options the pod has its own grace."""
    await world.pod(phase="Running", is_ready=True, terminationGracePeriodSeconds=7)
    answer = await world.evict("p", version=version)
    assert (answer.code, answer.body) == (201, SUCCESS)
    meta = (await world.get("p"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 7
    assert world.seconds_until(meta["deletionTimestamp"]) == 7


@pytest.mark.parametrize(
    ("eviction", "code", "message"),
    [
        pytest.param({"version": "policy/v2"}, 400, "", id="EV-01: those two versions and no other"),
        pytest.param(
            {"named": "q"},
            400,
            "name in URL does not match name in Eviction object",
            id="EV-02: it must name the pod of its address",
        ),
        pytest.param(
            {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
            422,
            "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: can not be set",
            id="EV-03: it may not ignore what cannot be read",
        ),
        pytest.param(
            {"query": "?dryRun=All", "dryRun": ["Some"]},
            500,
            "Non-matching dry-run options in request and content: [All] and [Some]",
            id="EV-04: dry run asked for in two ways",
        ),
    ],
)
async def test_eviction_that_makes_no_sense_is_refused(
    world: World, eviction: dict[str, Any], code: int, message: str
) -> None:
    pod = await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p", **eviction)
    assert answer.code == code
    assert answer.body.get("reason") == {400: "BadRequest", 422: "Invalid"}.get(code)
    assert message in answer.message
    assert await world.get("p") == pod


@pytest.mark.parametrize(
    ("query", "options"),
    [("?dryRun=All", {}), ("", {"dryRun": ["All"]}), ("?dryRun=All", {"dryRun": ["All"]})],
    ids=["in the query", "in the options", "in both"],
)
@pytest.mark.parametrize("phase", ["Running", "Pending"])
async def test_dry_run_succeeds_and_changes_neither_pod_nor_budget(
    world: World, query: str, options: dict[str, Any], phase: str
) -> None:
    """EV-04."""
    budget = await world.budget(allowed=1, current=3, desired=2)
    pod = await world.pod(phase=phase, is_ready=phase == "Running")
    answer = await world.evict("p", query=query, **options)
    assert (answer.code, answer.body) == (201, SUCCESS)
    assert await world.get("p") == pod
    assert await world.get_budget() == budget


async def test_dry_run_is_refused_where_the_budget_would_refuse(world: World) -> None:
    """EV-04: it is a rehearsal, not a way round the budget."""
    await world.budget(allowed=0, current=2, desired=2)
    pod = await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p", dryRun=["All"])).code == 429
    assert await world.get("p") == pod


@pytest.mark.parametrize(
    "phase",
    [
        pytest.param("Pending", id="EV-23b"),
        pytest.param("Succeeded", id="EV-23c"),
        pytest.param("Failed", id="EV-23d"),
    ],
)
async def test_pod_that_disrupts_nobody_is_deleted_without_asking_the_budget(
    world: World, phase: str
) -> None:
    """EV-05."""
    budget = await world.budget(allowed=0, current=1, desired=1)
    await world.pod(phase=phase)
    assert (await world.evict("p")).code == 201
    # Only what may still be running somewhere is given its grace.
    assert await world.is_gone("p") is (phase != "Pending")
    assert phase != "Pending" or await world.is_going()
    assert await world.get_budget() == budget


async def test_pod_that_is_going_already_is_deleted_without_asking_the_budget(world: World) -> None:
    """EV-05: here with a shorter grace."""
    budget = await world.budget(allowed=0, current=1, desired=1)
    await world.pod(phase="Running", is_ready=True)
    await world.delete("p", gracePeriodSeconds=30)
    assert (await world.evict("p", gracePeriodSeconds=5)).code == 201
    assert (await world.get("p"))["metadata"]["deletionGracePeriodSeconds"] == 5
    assert await world.get_budget() == budget


@on_both_stores
async def test_evicted_pod_says_why_it_goes_before_it_is_deleted(world: World) -> None:
    """EV-21."""
    pod = await world.pod(phase="Running", is_ready=True)
    await world.evict("p")
    said, marked = await world.events(pod)
    condition = said.obj["status"]["conditions"][-1]
    assert {key: condition[key] for key in ("type", "status", "reason", "message")} == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    assert world.seconds_until(condition["lastTransitionTime"]) == 0
    assert [each["type"] for each in said.obj["status"]["conditions"]] == ["Ready", "DisruptionTarget"]
    assert (said.type, "deletionTimestamp" in said.meta) == ("MODIFIED", False)
    assert (marked.type, "deletionTimestamp" in marked.meta) == ("MODIFIED", True)
    assert marked.obj["status"] == said.obj["status"]


async def test_second_eviction_has_nothing_new_to_say(world: World) -> None:
    """EV-21: the condition is written once."""
    await world.pod(phase="Running", is_ready=True)
    await world.evict("p")
    marked = await world.get("p")
    assert (await world.evict("p")).body == SUCCESS
    assert await world.get("p") == marked


async def test_plain_eviction_writes_the_condition_and_deletes(world: World) -> None:
    """EV-22a."""
    pod = await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p", gracePeriodSeconds=0)).code == 201
    assert await world.is_gone("p")
    seen = await world.events(pod)
    assert [event.type for event in seen] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert seen[-1].obj["status"]["conditions"][-1]["type"] == "DisruptionTarget"


async def test_eviction_of_a_missing_pod_is_not_found(world: World) -> None:
    """EV-22b."""
    answer = await world.evict("p")
    assert (answer.code, answer.message) == (404, 'pods "p" not found')


@pytest.mark.parametrize(
    "field",
    [pytest.param("uid", id="EV-22c"), pytest.param("resourceVersion", id="EV-22e")],
)
async def test_eviction_that_means_this_very_pod_succeeds(world: World, field: str) -> None:
    """EV-22e: although the condition makes a new version of it."""
    pod = await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p", preconditions={field: pod["metadata"][field]})
    assert (answer.code, answer.body) == (201, SUCCESS)
    assert await world.is_going()


@pytest.mark.parametrize(
    ("conditions", "hint"),
    [
        pytest.param({"uid": OTHER}, "might have been deleted and then recreated", id="EV-22d"),
        pytest.param({"resourceVersion": "1"}, "might have been modified", id="EV-22f"),
    ],
)
@pytest.mark.parametrize("phase", ["Running", "Pending", "Failed"])
async def test_eviction_that_means_another_pod_is_a_conflict(
    world: World, conditions: dict[str, str], hint: str, phase: str
) -> None:
    pod = await world.pod(phase=phase, is_ready=phase == "Running")
    answer = await world.evict("p", preconditions=conditions)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert answer.message.endswith(f"The object {hint}")
    assert await world.get("p") == pod


async def test_eviction_deletes_with_the_options_it_was_given(world: World) -> None:
    """EV-24: here grace and propagation."""
    await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p", gracePeriodSeconds=5, propagationPolicy="Foreground")).code == 201
    meta = (await world.get("p"))["metadata"]
    assert meta["deletionGracePeriodSeconds"] == 5
    assert meta["finalizers"] == ["foregroundDeletion"]
