"""What a status says of the pods."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.workloads.statefulset.status import RevisionNames, new_status
from tests.unit.workloads.statefulset.objects import NEW, NOW, OLD, pod, stateful_set

UPDATING = RevisionNames(OLD.name, NEW.name, 0)
DONE = RevisionNames(NEW.name, NEW.name, 0)


def test_of_a_set_without_pods_it_says_what_a_server_would_keep() -> None:
    assert new_status(stateful_set(0), [], DONE, NOW) == {
        "observedGeneration": 1,
        "replicas": 0,
        "availableReplicas": 0,
        "collisionCount": 0,
        "currentRevision": "web-new",
        "updateRevision": "web-new",
    }


def test_pods_are_counted_by_what_they_are() -> None:
    of = stateful_set(9, minReadySeconds=60)
    pods = [
        pod(of, 0),
        pod(of, 1, ready_for_seconds=5),
        pod(of, 2, ready=False, revision=OLD.name),
        pod(of, 3, phase="Pending"),
        pod(of, 4, going=True),
        pod(of, 5, phase="Failed", revision=OLD.name),
    ]
    assert new_status(of, pods, UPDATING, NOW) == {
        "observedGeneration": 1,
        "replicas": 6,
        "readyReplicas": 3,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 3,
        "collisionCount": 0,
        "currentRevision": "web-old",
        "updateRevision": "web-new",
    }


def test_the_pod_that_is_being_updated_is_not_of_the_current_revision_any_more() -> None:
    of = stateful_set(2)
    pods = [pod(of, each, revision=OLD.name) for each in range(2)]
    assert new_status(of, pods, UPDATING, NOW, updated=pods[1])["currentReplicas"] == 1


def test_one_of_a_revision_in_between_does_not_make_the_count_negative() -> None:
    of = stateful_set(1)
    between = pod(of, 0, revision="web-between")
    assert "currentReplicas" not in new_status(of, [between], UPDATING, NOW, updated=between)


@pytest.mark.parametrize(
    ("spec", "changed", "current"),
    [
        ({}, {}, "web-new"),
        ({"updateStrategy": {"type": "OnDelete"}}, {}, "web-old"),
        ({}, {"ready": False}, "web-old"),
        ({}, {"revision": OLD.name}, "web-old"),
        ({}, {"going": True}, "web-old"),
    ],
)
def test_an_update_is_complete_when_every_pod_is_updated_and_ready(
    spec: dict[str, Any], changed: dict[str, Any], current: str
) -> None:
    of = stateful_set(2, **spec)
    status = new_status(of, [pod(of, 0, **changed), pod(of, 1)], UPDATING, NOW)
    assert status["currentRevision"] == current
    assert status.get("currentReplicas", 0) == (2 if current == "web-new" else int("revision" in changed))


def test_an_update_is_not_complete_while_there_are_too_many_pods() -> None:
    of = stateful_set(1)
    status = new_status(of, [pod(of, 0), pod(of, 1)], UPDATING, NOW)
    assert status["currentRevision"] == "web-old"


def test_conditions_that_somebody_else_set_stay() -> None:
    conditions = [{"type": "Mine", "status": "True"}]
    of = stateful_set(0, status={"conditions": conditions, "readyReplicas": 4, "currentReplicas": 2})
    status = new_status(of, [], DONE, NOW)
    assert status["conditions"] == conditions
    assert "readyReplicas" not in status
    assert "currentReplicas" not in status
