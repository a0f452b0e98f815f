"""Evictions where a disruption budget has a say."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.codec import Object
from tests.conformance.graceful_deletion.conftest import on_both_stores
from tests.conformance.graceful_deletion.world import Answer, World

REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
TIME = "2026-01-01T00:00:00Z"


def condition(status: str, reason: str, message: str = "") -> Object:
    said = {"type": "DisruptionAllowed", "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": TIME, "observedGeneration": 1}


def assert_refused(answer: Answer, cause: str, *, retry: int | None = None) -> None:
    assert (answer.code, answer.body["reason"], answer.message) == (429, "TooManyRequests", REFUSED)
    assert answer.cause == {"reason": "DisruptionBudget", "message": cause}
    assert answer.body["details"].get("retryAfterSeconds") == retry


async def test_pod_with_two_budgets_can_not_be_evicted(world: World) -> None:
    """EV-11. The answer has the code of its body, seen on the real server."""
    for name in ("b", "c"):
        await world.budget(name, allowed=1, current=2, desired=1)
    pod = await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p")
    assert (answer.code, answer.body["code"], answer.body["status"]) == (500, 500, "Failure")
    assert not answer.body.keys() & {"reason", "details"}
    assert answer.message == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
    assert await world.get("p") == pod
    assert (await world.get_budget())["status"]["disruptionsAllowed"] == 1


@pytest.mark.parametrize(
    ("selector", "is_meant"),
    [
        ({"matchLabels": {"app": "a"}}, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}, True),
        ({}, True),
        ({"matchLabels": {"app": "b"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
    ids=["same label", "expression", "empty", "other label", "other expression"],
)
async def test_budget_is_asked_where_its_selector_matches(
    world: World, selector: Object, is_meant: bool
) -> None:
    """EV-12."""
    await world.budget(allowed=0, current=1, desired=1, selector=selector)
    await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p")).code == (429 if is_meant else 201)
    assert await world.is_going() is not is_meant


@pytest.mark.parametrize("selector", [{"matchLabels": {"app": "not valid!"}}, None], ids=["invalid", "none"])
async def test_budget_whose_selector_selects_nothing_is_ignored(
    world: World, selector: Object | None
) -> None:
    """EV-12: no client can bring such a selector about any more."""
    await world.budget(allowed=0)
    await world.plant("b", resource="poddisruptionbudgets", spec={"selector": selector})
    await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p")).code == 201
    assert await world.is_going()


async def test_budget_of_another_namespace_has_no_say(world: World) -> None:
    """EV-12."""
    here = world.namespace
    world.namespace = f"{here}-other"
    await world.request("POST", "/api/v1/namespaces", {"metadata": {"name": world.namespace}})
    await world.budget(allowed=0)
    world.namespace = here
    await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p")).code == 201


async def test_budget_that_is_used_up_refuses(world: World) -> None:
    """EV-13: now, and without telling when to come again."""
    budget = await world.budget(allowed=0, current=2, desired=2)
    pod = await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p")
    assert_refused(answer, "The disruption budget b needs 2 healthy pods and has 2 currently")
    assert "Retry-After" not in answer.headers
    assert await world.get("p") == pod
    assert await world.get_budget() == budget


SYNC_FAILED = "does not allow evicting pods currently because it failed sync: no controller"


@pytest.mark.parametrize(
    ("current", "conditions", "cause"),
    [
        (1, [condition("False", "SyncFailed", "no controller")], SYNC_FAILED),
        (3, [condition("False", "SyncFailed", "no controller")], SYNC_FAILED),
        (1, [condition("False", "Other", "because")], "needs 2 healthy pods and has 1 currently"),
        (2, [condition("False", "SyncFailed")], "needs 2 healthy pods and has 2 currently"),
        (
            3,
            [condition("False", "Other", "because")],
            "does not allow evicting pods currently (Other): because",
        ),
        (3, [condition("False", "Other")], "does not allow evicting pods currently"),
        (3, [condition("True", "Other", "because")], "does not allow evicting pods currently"),
        (3, [], "does not allow evicting pods currently"),
    ],
)
async def test_refusal_tells_the_first_reason_that_fits(
    world: World, current: int, conditions: list[Object], cause: str
) -> None:
    """EV-14."""
    await world.budget(allowed=0, current=current, desired=2, status={"conditions": conditions})
    await world.pod(phase="Running", is_ready=True)
    assert_refused(await world.evict("p"), f"The disruption budget b {cause}")


async def test_budget_that_its_controller_has_not_seen_yet_asks_to_come_again(world: World) -> None:
    """EV-15."""
    budget = await world.budget(allowed=1, current=3, desired=2, status={"observedGeneration": 0})
    await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p")
    assert_refused(answer, "The disruption budget b is still being processed by the server.", retry=10)
    assert answer.headers["Retry-After"] == "10"
    assert not await world.is_going()
    assert await world.get_budget() == budget


async def test_budget_with_a_negative_allowance_forbids(world: World) -> None:
    """EV-16: only a broken controller of old could have left it."""
    await world.budget(allowed=0)
    await world.plant("b", resource="poddisruptionbudgets", status={"disruptionsAllowed": -1})
    await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p")
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert answer.message.endswith("pdb disruptions allowed is negative")
    assert not await world.is_going()


@pytest.mark.parametrize(("disrupted", "code"), [(2000, 201), (2001, 403)])
async def test_budget_with_too_many_unconfirmed_evictions_forbids(
    world: World, disrupted: int, code: int
) -> None:
    """EV-16: more than 2000."""
    waiting = {"disruptedPods": {f"gone-{number}": TIME for number in range(disrupted)}}
    await world.budget(allowed=1, current=3, desired=2, status=waiting)
    await world.pod(phase="Running", is_ready=True)
    answer = await world.evict("p")
    assert answer.code == code
    assert await world.is_going() is (code == 201)
    if code == 403:
        assert answer.message.endswith(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )


@on_both_stores
@pytest.mark.parametrize(
    ("allowed", "status", "reason"), [(3, "True", "SufficientPods"), (1, "False", "InsufficientPods")]
)
async def test_eviction_is_taken_from_the_budget(
    world: World, allowed: int, status: str, reason: str
) -> None:
    """EV-17: one less, the pod noted, and the last one flips the condition."""
    conditions = {"conditions": [condition("True", "SufficientPods")]}
    before = await world.budget(allowed=allowed, current=5, desired=2, status=conditions)
    await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p")).code == 201
    budget = await world.get_budget()
    assert budget["status"]["disruptionsAllowed"] == allowed - 1
    assert list(budget["status"]["disruptedPods"]) == ["p"]
    assert world.seconds_until(budget["status"]["disruptedPods"]["p"]) == 0
    [said] = budget["status"]["conditions"]
    assert (said["status"], said["reason"]) == (status, reason)
    assert (said["lastTransitionTime"] == TIME) is (status == "True")
    assert budget["metadata"]["generation"] == before["metadata"]["generation"]
    assert await world.is_going()


async def test_refused_delete_does_not_cost_the_budget_anything(world: World) -> None:
    """EV-17 the other way round. Upstream takes the disruption first and leaves it taken when the delete then
    fails; here what the delete would refuse is refused before anything is written."""
    budget = await world.budget(allowed=1, current=3, desired=2)
    pod = await world.pod(phase="Running", is_ready=True)
    assert (await world.evict("p", preconditions={"uid": "another"})).code == 409
    assert (await world.evict("p", propagationPolicy="Slowly")).code == 422
    assert await world.get_budget() == budget
    assert await world.get("p") == pod


@pytest.mark.parametrize(
    ("policy", "current", "desired", "is_free"),
    [
        ("AlwaysAllow", 0, 3, True),
        ("AlwaysAllow", 0, 0, True),
        pytest.param("AlwaysAllow", 2, 2, True, id="EV-23k: always"),
        pytest.param("IfHealthyBudget", 2, 2, True, id="EV-23k: if healthy"),
        pytest.param(None, 2, 2, True, id="EV-23k: no policy"),
        ("IfHealthyBudget", 3, 2, True),
        ("IfHealthyBudget", 2, 3, False),
        (None, 2, 3, False),
        (None, 1, 0, False),
    ],
)
@pytest.mark.parametrize("allowed", [0, 1])
async def test_pod_that_is_not_ready_is_free_where_the_application_is_healthy_without_it(
    world: World, policy: str | None, current: int, desired: int, is_free: bool, allowed: int
) -> None:
    """EV-18: free means that the budget is neither asked nor touched; otherwise it is as for any pod."""
    budget = await world.budget(allowed=allowed, current=current, desired=desired, policy=policy)
    pod = await world.pod(phase="Running", is_ready=False)
    answer = await world.evict("p")
    assert answer.code == (201 if is_free or allowed else 429)
    assert await world.is_going() is (answer.code == 201)
    assert len(await world.marks(pod)) == (1 if answer.code == 201 else 0)
    after = await world.get_budget()
    if is_free or not allowed:
        assert after == budget
    else:
        assert after["status"]["disruptionsAllowed"] == 0


NEEDS_NONE = "The disruption budget b needs 0 healthy pods and has 0 currently"


@pytest.mark.parametrize("policy", [None, "IfHealthyBudget"])
async def test_running_pod_is_kept_by_a_budget_that_allows_nothing(world: World, policy: str | None) -> None:
    """EV-23a."""
    await world.budget(allowed=0, policy=policy)
    await world.pod(phase="Running")
    assert_refused(await world.evict("p"), NEEDS_NONE)
    assert not await world.is_going()


@pytest.mark.parametrize(
    ("budget", "pod", "code"),
    [
        pytest.param({"allowed": 1}, {}, 201, id="EV-23e"),
        pytest.param({"allowed": 0, "selector": {"matchLabels": {"app": "b"}}}, {}, 201, id="EV-23f"),
        pytest.param({"allowed": 0, "selector": {}}, {}, 429, id="EV-23h"),
        pytest.param({"allowed": 0, "current": 2, "desired": 2}, {"is_ready": True}, 429, id="EV-23i"),
        pytest.param({"allowed": 1, "current": 3, "desired": 3}, {"is_ready": True}, 201, id="EV-23j"),
        pytest.param({"allowed": 0, "policy": "AlwaysAllow"}, {"is_ready": False}, 201, id="EV-23l"),
    ],
)
async def test_running_pod_is_deleted_once_or_not_at_all(
    world: World, budget: dict[str, Any], pod: dict[str, Any], code: int
) -> None:
    await world.budget(**budget)
    before = await world.pod(phase="Running", **pod)
    assert (await world.evict("p")).code == code
    marks = await world.marks(before)
    assert len(marks) == (1 if code == 201 else 0)
    assert await world.is_going() is (code == 201)


async def test_pod_that_is_going_already_is_evicted_in_spite_of_the_budget(world: World) -> None:
    """EV-23g: and a longer grace than the running one changes nothing of its deletion."""
    await world.budget(allowed=0)
    await world.pod(phase="Running", is_ready=True)
    marked = (await world.delete("p")).body
    assert (await world.evict("p", gracePeriodSeconds=300)).code == 201
    meta = (await world.get("p"))["metadata"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        assert meta[field] == marked["metadata"][field]
