from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.api.codec import format_time
from podlife.workloads.deployment.rollout import Rollout
from podlife.workloads.deployment.status import (
    conditions_before,
    created,
    creation_failed,
    is_complete,
    new_status,
    seconds_to_deadline,
    with_progress,
)
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.status import find_condition
from tests.kit import objects
from tests.unit.workloads.deployment.objects import NOW, deployment, replica_set, rollout

Condition = dict[str, Any]


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
    assert find_condition(new_status(known, [], NOW)["conditions"], "Available") == objects.condition(
        "Available",
        status,
        reason=reason,
        message=message,
        lastUpdateTime="2030-01-01T12:00:00Z",
        lastTransitionTime="2030-01-01T12:00:00Z",
    )


def progressing(reason: str, *, status: str = "True", ago_seconds: float = 0) -> Condition:
    at = format_time(NOW - timedelta(seconds=ago_seconds))
    about = {"type": "Progressing", "status": status, "reason": reason, "message": "m"}
    return {**about, "lastUpdateTime": at, "lastTransitionTime": at}


def with_status(status: dict[str, Any], *conditions: Condition, deadline: int | None = 60) -> Deployment:
    return deployment(2, progressDeadlineSeconds=deadline, status={**status, "conditions": list(conditions)})


def status_of(known: Rollout) -> dict[str, Any]:
    conditions = conditions_before(known, NOW)
    return with_progress(known, conditions, new_status(known, conditions, NOW), NOW)


def progress(known: Rollout) -> Condition | None:
    return find_condition(status_of(known)["conditions"], "Progressing")


def told(known: Rollout) -> tuple[str, str, str]:
    found = progress(known)
    assert found is not None
    return found["status"], found["reason"], found["message"]


STUCK = {"replicas": 2, "updatedReplicas": 2, "observedGeneration": 1}


def test_rollout_that_is_done_says_so() -> None:
    known = rollout(with_status(STUCK, progressing("ReplicaSetUpdated")), replica_set("new", 2))
    assert told(known) == ("True", "NewReplicaSetAvailable", 'ReplicaSet "new" has successfully progressed.')


def test_pods_that_come_and_go_after_a_rollout_are_no_progress() -> None:
    done = progressing("NewReplicaSetAvailable", ago_seconds=1000)
    known = rollout(with_status(STUCK, done), replica_set("new", 2, available=1))
    assert progress(known) == done


@pytest.mark.parametrize(
    "before",
    [
        {"replicas": 2, "updatedReplicas": 1},
        {"replicas": 5, "updatedReplicas": 2},
        {**STUCK, "availableReplicas": 0, "readyReplicas": 1},
    ],
)
def test_any_progress_is_told_with_its_time_even_if_nothing_else_changes(before: dict[str, Any]) -> None:
    old = progressing("ReplicaSetUpdated", ago_seconds=50)
    new = replica_set("new", 2, available=1, status={"readyReplicas": 1})
    found = progress(rollout(with_status(before, old), new))
    assert found is not None
    assert (found["reason"], found["message"]) == ("ReplicaSetUpdated", 'ReplicaSet "new" is progressing.')
    assert found["lastUpdateTime"] == format_time(NOW)
    assert found["lastTransitionTime"] == old["lastTransitionTime"]


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        (progressing("ReplicaSetUpdated", ago_seconds=60), "ReplicaSetUpdated"),
        (progressing("ReplicaSetUpdated", ago_seconds=61), "ProgressDeadlineExceeded"),
        (progressing("NewReplicaSetCreated", ago_seconds=61), "ProgressDeadlineExceeded"),
        (progressing("DeploymentResumed", status="Unknown", ago_seconds=61), "ProgressDeadlineExceeded"),
        (progressing("ProgressDeadlineExceeded", status="False"), "ProgressDeadlineExceeded"),
    ],
)
def test_rollout_without_progress_for_longer_than_its_deadline_is_late(old: Condition, expected: str) -> None:
    known = rollout(
        with_status({**STUCK, "replicas": 3}, old),
        replica_set("new", 2, available=0),
        replica_set("old", 1, available=0),
    )
    assert told(known)[1] == expected


def test_late_rollout_says_what_is_late() -> None:
    old = progressing("ReplicaSetUpdated", ago_seconds=61)
    known = rollout(with_status(STUCK, old), replica_set("new", 2, available=0))
    late = ("False", "ProgressDeadlineExceeded", 'ReplicaSet "new" has timed out progressing.')
    assert told(known) == late
    without_new = rollout(
        with_status(STUCK | {"updatedReplicas": 0}, old), None, replica_set("old", 2, available=0)
    )
    assert told(without_new)[2] == 'Deployment "web" has timed out progressing.'


def test_time_since_the_last_rollout_is_not_that_of_the_next() -> None:
    done = progressing("NewReplicaSetAvailable", ago_seconds=1000)
    known = rollout(
        with_status({**STUCK, "updatedReplicas": 0}, done),
        replica_set("new", 0),
        replica_set("old", 2, available=0),
    )
    assert progress(known) == done


def test_without_a_deadline_nothing_is_said() -> None:
    for deadline in (None, 2**31 - 1):
        known = rollout(with_status(STUCK, progressing("x"), deadline=deadline), replica_set("new", 2))
        assert progress(known) is None
        assert created(known.deployment, [], "new", NOW) == []
        assert creation_failed(known.deployment, [], "why", NOW) == []


def test_paused_is_said_once_and_is_not_held_against_it() -> None:
    web = deployment(2, paused=True, progressDeadlineSeconds=60)
    (condition,) = conditions_before(rollout(web, None), NOW)
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "Unknown",
        "DeploymentPaused",
        "Deployment is paused",
    )
    again = deployment(2, paused=True, progressDeadlineSeconds=60, status={"conditions": [condition]})
    assert conditions_before(rollout(again, None), NOW + timedelta(hours=1)) == [condition]
    resumed = deployment(2, progressDeadlineSeconds=60, status={"conditions": [condition]})
    (told_now,) = conditions_before(rollout(resumed, None), NOW + timedelta(hours=1))
    assert (told_now["reason"], told_now["message"]) == ("DeploymentResumed", "Deployment is resumed")
    assert told_now["lastUpdateTime"] == format_time(NOW + timedelta(hours=1))


def test_lateness_is_not_covered_up_by_pausing() -> None:
    late = progressing("ProgressDeadlineExceeded", status="False")
    web = deployment(2, paused=True, progressDeadlineSeconds=60, status={"conditions": [late]})
    assert conditions_before(rollout(web, None), NOW) == [late]


def test_replica_set_that_was_there_already_was_found() -> None:
    web = deployment(2, progressDeadlineSeconds=60)
    (condition,) = conditions_before(rollout(web, replica_set("new", 1)), NOW)
    assert (condition["reason"], condition["message"]) == (
        "FoundNewReplicaSet",
        'Found new replica set "new"',
    )


def test_creation_and_its_failure_are_told() -> None:
    web = deployment(2, progressDeadlineSeconds=60)
    (made,) = created(web, [], "web-abc", NOW)
    assert (made["status"], made["reason"]) == ("True", "NewReplicaSetCreated")
    assert made["message"] == 'Created new replica set "web-abc"'
    (failed,) = creation_failed(web, [made], "why", NOW)
    assert (failed["status"], failed["reason"], failed["message"]) == (
        "False",
        "ReplicaSetCreateError",
        "why",
    )


def failing(message: str) -> dict[str, Any]:
    about = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    return {"conditions": [{**about, "lastTransitionTime": "2030-01-01T11:00:00Z"}]}


def test_failure_of_the_new_replica_set_is_told_before_those_of_old_ones_and_taken_back() -> None:
    new = replica_set("new", 1, available=0, status=failing("of the new"))
    old = replica_set("old", 1, status=failing("of the old"))
    web = deployment(2, progressDeadlineSeconds=60)
    failure = find_condition(status_of(rollout(web, new, old))["conditions"], "ReplicaFailure")
    assert failure is not None
    assert (failure["message"], failure["lastUpdateTime"]) == ("of the new", "2030-01-01T11:00:00Z")
    healthy = replica_set("new", 1, available=0)
    failure = find_condition(status_of(rollout(web, healthy, old))["conditions"], "ReplicaFailure")
    assert failure is not None
    assert failure["message"] == "of the old"
    failed = deployment(2, progressDeadlineSeconds=60, status={"conditions": [failure]})
    conditions = status_of(rollout(failed, healthy))["conditions"]
    assert find_condition(conditions, "ReplicaFailure") is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1}, True),
        ({"replicas": 3, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1}, False),
        ({"replicas": 2, "updatedReplicas": 1, "availableReplicas": 2, "observedGeneration": 1}, False),
        ({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 1, "observedGeneration": 1}, False),
        ({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 0}, False),
        ({}, False),
    ],
)
def test_rollout_is_complete_when_all_are_new_and_available_in_this_generation(
    status: dict[str, Any], expected: bool
) -> None:
    assert is_complete(deployment(2), status) is expected


@pytest.mark.parametrize(
    ("condition", "deadline", "expected"),
    [
        (progressing("ReplicaSetUpdated", ago_seconds=20), 60, 41.0),
        (progressing("ReplicaSetUpdated", ago_seconds=90), 60, 1.0),
        (progressing("ReplicaSetUpdated"), None, None),
        (progressing("NewReplicaSetAvailable", ago_seconds=90), 60, None),
        (progressing("ProgressDeadlineExceeded", ago_seconds=90), 60, None),
        ({"type": "Available", "status": "True"}, 60, None),
    ],
)
def test_check_is_planned_for_just_after_the_deadline(
    condition: Condition, deadline: int | None, expected: float | None
) -> None:
    web = deployment(2, progressDeadlineSeconds=deadline)
    assert seconds_to_deadline(web, {"conditions": [condition]}, NOW) == expected


def test_no_check_is_planned_for_a_rollout_that_is_done() -> None:
    status = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "observedGeneration": 1}
    web = deployment(2, progressDeadlineSeconds=60)
    assert seconds_to_deadline(web, {**status, "conditions": [progressing("ReplicaSetUpdated")]}, NOW) is None
