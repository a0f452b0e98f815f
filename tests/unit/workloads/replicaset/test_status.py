"""What a ReplicaSet's status says, as the server encodes it."""

from __future__ import annotations

import pytest

from podlife.errors import ForbiddenError
from podlife.workloads.replicaset.status import new_status
from tests.unit.workloads.replicaset.made import NOW, pod, replica_set

FAILED = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no: 403"}
TIME = {"lastTransitionTime": "2030-01-01T00:00:00Z"}


def test_counts_that_are_zero_are_left_out_but_for_two() -> None:
    assert new_status(replica_set(), [], [], None, NOW) == {
        "replicas": 0,
        "terminatingReplicas": 0,
        "observedGeneration": 3,
    }


def test_pods_are_counted_by_label_readiness_and_availability() -> None:
    active = [
        pod("a", ready_for=60),
        pod("b", ready_for=1),
        pod("c"),
        pod("d", labels={"app": "web", "version": "0"}),
    ]
    changed = replica_set(
        4,
        minReadySeconds=30,
        template={"metadata": {"labels": {"app": "web", "version": "0"}}, "spec": {}},
    )
    assert new_status(changed, active, [pod("e", is_going=True)], None, NOW) == {
        "replicas": 4,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "terminatingReplicas": 1,
        "observedGeneration": 3,
    }


@pytest.mark.parametrize(("since", "available"), [(29.0, None), (30.0, 1), (31.0, 1)])
def test_a_pod_is_available_when_it_has_been_ready_for_long_enough(
    since: float, available: int | None
) -> None:
    status = new_status(replica_set(minReadySeconds=30), [pod(ready_for=since)], [], None, NOW)
    assert status.get("availableReplicas") == available


def test_what_others_wrote_into_the_status_stays() -> None:
    theirs = {"type": "Theirs", "status": "False"}
    old = {"conditions": [theirs], "readyReplicas": 7, "somethingNew": 1}
    status = new_status(replica_set(status=old), [], [], None, NOW)
    assert (status["conditions"], status["somethingNew"]) == ([theirs], 1)
    assert "readyReplicas" not in status


@pytest.mark.parametrize(("active", "reason"), [([], "FailedCreate"), ([pod("a"), pod("b")], "FailedDelete")])
def test_a_failure_becomes_a_condition_with_what_failed(active: list[object], reason: str) -> None:
    status = new_status(replica_set(1), active, [], ForbiddenError("no: 403"), NOW)  # type: ignore[arg-type]
    assert status["conditions"] == [{**FAILED, **TIME, "reason": reason}]


def test_a_failure_that_goes_on_is_told_as_it_was_first() -> None:
    known = {**FAILED, "lastTransitionTime": "2029-12-31T00:00:00Z"}
    old = replica_set(1, status={"conditions": [known]})
    assert new_status(old, [], [], ForbiddenError("another"), NOW)["conditions"] == [known]


def test_a_failure_that_is_over_leaves_no_condition() -> None:
    old = replica_set(1, status={"conditions": [{**FAILED, **TIME}]})
    assert "conditions" not in new_status(old, [pod()], [], None, NOW)
