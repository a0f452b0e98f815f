"""How many of its pods a budget lets go, worked out from what is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from podlife.api.codec import format_time
from podlife.podcontrol import InvalidInputError
from podlife.workloads.disruption.status import (
    Disrupted,
    Expected,
    count_healthy,
    disrupted_of,
    expected_of,
    failed_status,
    needs_scale,
    new_status,
    patch_of,
    selector_text,
)
from podlife.workloads.disruption.views import Budget, BudgetSpec
from podlife.workloads.views import WorkloadPod
from tests.kit import objects

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JUST_NOW = format_time(NOW - timedelta(seconds=30))


def budget(status: dict[str, Any] | None = None, **spec: Any) -> Budget:
    metadata = {"name": "web", "namespace": "ns", "uid": "u", "generation": 2}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status or {}}, Budget)


def pod(name: str, *, ready: bool = True, deleting: bool = False) -> WorkloadPod:
    metadata = {"name": name, "namespace": "ns"} | (
        {"deletionTimestamp": "2026-01-02T03:04:05Z"} if deleting else {}
    )
    conditions = [{"type": "Ready", "status": str(ready)}]
    return msgspec.convert(
        {"metadata": metadata, "status": {"conditions": conditions}}, WorkloadPod, strict=False
    )


@pytest.mark.parametrize(
    ("spec", "pods", "healthy"),
    [
        ({"minAvailable": 2}, 5, 2),
        ({"minAvailable": 7}, 5, 7),
        ({"minAvailable": "50%"}, 5, 3),
        ({"minAvailable": "0%"}, 5, 0),
        ({"maxUnavailable": 1}, 5, 4),
        ({"maxUnavailable": 9}, 5, 0),
        ({"maxUnavailable": "41%"}, 5, 2),
        ({"maxUnavailable": "100%"}, 5, 0),
        ({"maxUnavailable": 0}, 5, 5),
    ],
)
def test_shares_are_rounded_up_and_nothing_below_zero_is_wanted(
    spec: dict[str, Any], pods: int, healthy: int
) -> None:
    assert expected_of(budget(**spec).spec, pods) == Expected(pods, healthy)


def test_a_budget_that_says_nothing_expects_nothing() -> None:
    assert expected_of(BudgetSpec(), 5) == Expected(0, 0)


def test_what_is_neither_a_number_nor_a_share_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="maxUnavailable"):
        expected_of(budget(maxUnavailable="half").spec, 5)


@pytest.mark.parametrize(
    ("spec", "is_needed"),
    [
        ({"minAvailable": 1}, False),
        ({"minAvailable": "1%"}, True),
        ({"maxUnavailable": 1}, True),
        ({"maxUnavailable": "1%"}, True),
        ({}, False),
    ],
)
def test_owners_are_asked_unless_a_plain_minimum_is_given(spec: dict[str, Any], is_needed: bool) -> None:
    assert needs_scale(budget(**spec).spec) is is_needed


def test_a_pod_counts_if_it_is_ready_not_deleted_and_not_just_evicted() -> None:
    pods = [pod("a"), pod("b", ready=False), pod("c", deleting=True), pod("d")]
    assert count_healthy(pods, Disrupted({"d": JUST_NOW})) == 1


def test_a_record_stays_while_its_pod_may_still_be_deleted() -> None:
    recorded = {"a": JUST_NOW, "b": JUST_NOW, "gone": JUST_NOW, "c": format_time(NOW - timedelta(seconds=90))}
    pods = [pod("a"), pod("b", deleting=True), pod("c"), pod("d")]
    found = disrupted_of(budget({"disruptedPods": recorded}), pods, NOW)
    assert found == Disrupted({"a": recorded["a"], "c": recorded["c"]}, (), NOW + timedelta(seconds=30))


@pytest.mark.parametrize("seconds", [120, 121])
def test_a_pod_that_was_not_deleted_in_time_counts_again_and_is_told_of(seconds: int) -> None:
    """At the very moment too: a record that expires now must not be looked at again at once, for ever."""
    at = format_time(NOW - timedelta(seconds=seconds))
    found = disrupted_of(budget({"disruptedPods": {"a": at}}), [pod("a")], NOW)
    assert (found.recorded, found.expires) == ({}, None)
    assert [each.metadata.name for each in found.overdue] == ["a"]


def test_a_record_with_a_time_that_cannot_be_counts_no_longer() -> None:
    found = disrupted_of(budget({"disruptedPods": {"a": "9999-12-31T23:59:59Z"}}), [pod("a")], NOW)
    assert found.recorded == {}


@pytest.mark.parametrize(
    ("expected", "healthy", "allowed", "reason"),
    [
        (Expected(3, 2), 3, 1, "SufficientPods"),
        (Expected(3, 2), 2, 0, "InsufficientPods"),
        (Expected(3, 2), 1, 0, "InsufficientPods"),
        # Its first pods may come before this is worked out again.
        (Expected(0, 0), 3, 0, "InsufficientPods"),
    ],
)
def test_so_many_may_go_as_are_healthy_beyond_the_minimum(
    expected: Expected, healthy: int, allowed: int, reason: str
) -> None:
    status = new_status(budget(), expected, healthy, Disrupted({}), NOW)
    assert status["disruptionsAllowed"] == allowed
    assert status["conditions"] == [
        objects.condition(
            "DisruptionAllowed",
            "True" if allowed else "False",
            observedGeneration=2,
            lastTransitionTime=format_time(NOW),
            reason=reason,
            message="",
        )
    ]
    assert status["observedGeneration"] == 2


def test_a_condition_keeps_its_place_and_its_time_while_its_status_stays() -> None:
    other = {"type": "Other", "status": "True"}
    first = new_status(budget(), Expected(3, 2), 3, Disrupted({}), NOW)
    known = budget({**first, "conditions": [*first["conditions"], other]})
    again = new_status(known, Expected(4, 2), 4, Disrupted({}), NOW + timedelta(hours=1))
    assert again["conditions"] == [*first["conditions"], other]
    turned = new_status(known, Expected(3, 2), 2, Disrupted({}), NOW + timedelta(hours=1))
    assert turned["conditions"][0]["lastTransitionTime"] == format_time(NOW + timedelta(hours=1))


def test_what_cannot_be_worked_out_allows_nothing_and_says_why() -> None:
    known = budget({"disruptionsAllowed": 3, "currentHealthy": 4, "observedGeneration": 1})
    status = failed_status(known, "found no controllers", NOW)
    assert (status["disruptionsAllowed"], status["currentHealthy"]) == (0, 4)
    [condition] = status["conditions"]
    assert (condition["reason"], condition["message"]) == ("SyncFailed", "found no controllers")
    assert condition["observedGeneration"] == 1


def test_a_record_that_is_dropped_is_taken_away_by_the_patch_and_the_others_stay() -> None:
    old = {"disruptedPods": {"a": "1", "b": "2"}, "currentHealthy": 1}
    assert patch_of(old, {"disruptedPods": {"b": "2"}, "currentHealthy": 1}) == {
        "disruptedPods": {"a": None, "b": "2"}
    }
    assert patch_of(old, {"currentHealthy": 1}) == {"disruptedPods": None}
    assert patch_of(old, old) == {}


def test_a_selector_is_told_as_go_prints_it() -> None:
    selector = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}
    assert selector_text(budget(selector=selector)) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:Exists,Values:[],},},}"
    )
