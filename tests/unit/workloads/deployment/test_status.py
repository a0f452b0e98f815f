from __future__ import annotations

from typing import Any

import pytest

from podlife.workloads.deployment.status import new_status
from podlife.workloads.status import find_condition
from tests.unit.workloads.deployment.objects import NOW, deployment, replica_set, rollout


def test_counts_are_added_up_and_those_of_nothing_are_left_out() -> None:
    new = replica_set("new", 3, available=1, status={"readyReplicas": 2, "terminatingReplicas": 1})
    old = replica_set("old", 2, available=2, status={"readyReplicas": 2, "terminatingReplicas": 2})
    before = {"collisionCount": 4, "ofTheFuture": "kept", "unavailableReplicas": 9}
    status = new_status(rollout(deployment(4, status=before), new, old), [], NOW)
    conditions = status.pop("conditions")
    assert status == {
        "observedGeneration": 1,
        "replicas": 5,
        "updatedReplicas": 3,
        "readyReplicas": 4,
        "availableReplicas": 3,
        "unavailableReplicas": 2,
        "terminatingReplicas": 3,
        "collisionCount": 4,
        "ofTheFuture": "kept",
    }
    assert [each["type"] for each in conditions] == ["Available"]


def test_deployment_without_pods_has_no_counts_but_that_none_are_going() -> None:
    status = new_status(rollout(deployment(0), None), [], NOW)
    assert set(status) == {"observedGeneration", "terminatingReplicas", "conditions"}
    assert status["terminatingReplicas"] == 0


def test_more_available_than_wanted_are_not_a_negative_number() -> None:
    status = new_status(rollout(deployment(2), replica_set("new", 2, available=5)), [], NOW)
    assert "unavailableReplicas" not in status


@pytest.mark.parametrize(
    ("of_old", "expected"),
    [
        ({"terminatingReplicas": 2}, 2),
        ({"terminatingReplicas": None, "observedGeneration": 0}, 0),
        # Its controller has counted it, but does not know of such pods.
        ({"terminatingReplicas": None, "observedGeneration": 1}, None),
    ],
)
def test_going_pods_are_counted_if_every_replica_set_counts_them(
    of_old: dict[str, Any], expected: int | None
) -> None:
    new = replica_set("new", 1, status={"terminatingReplicas": 0})
    known = rollout(
        deployment(1, status={"terminatingReplicas": 9}), new, replica_set("old", 0, status=of_old)
    )
    assert new_status(known, [], NOW).get("terminatingReplicas") == expected


@pytest.mark.parametrize(
    ("available", "status", "reason", "message"),
    [
        (8, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        (7, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    ],
)
def test_available_says_whether_no_more_are_missing_than_may_be(
    available: int, status: str, reason: str, message: str
) -> None:
    known = rollout(deployment(10, unavailable=2), replica_set("new", 10, available=available))
    assert find_condition(new_status(known, [], NOW)["conditions"], "Available") == {
        "type": "Available",
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": "2030-01-01T12:00:00Z",
        "lastTransitionTime": "2030-01-01T12:00:00Z",
    }
