from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from podlife.workloads.deployment.decision import removable
from tests.unit.workloads.deployment.objects import NOW, deployment, replica_set, rollout


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0, ["a", "b", "c"]), (1, ["a", "b"]), (3, []), (10, []), (None, []), (2**31 - 1, [])],
)
def test_oldest_revisions_past_the_limit_go(limit: int | None, expected: list[str]) -> None:
    # The order is that of their revisions, not of their ages: "a" is the youngest.
    old = [
        replica_set(name, 0, revision=revision, age_seconds=age)
        for name, revision, age in (("b", "2", 30), ("c", "10", 20), ("a", "1", 10))
    ]
    found = removable(rollout(deployment(revisionHistoryLimit=limit), replica_set("new", 10), *old))
    assert [each.metadata.name for each in found] == expected


def test_one_that_has_pods_or_may_get_some_counts_and_stays() -> None:
    old = [
        replica_set("wanted", 1, revision="1"),
        replica_set("counted", 0, revision="2", status={"replicas": 1}),
        replica_set("unseen", 0, revision="3", status={"observedGeneration": 0}),
        replica_set("idle", 0, revision="4"),
        replica_set("kept", 0, revision="5"),
    ]
    found = removable(rollout(deployment(revisionHistoryLimit=1), None, *old))
    assert [each.metadata.name for each in found] == ["idle"]


def test_one_that_is_going_already_does_not_count() -> None:
    going = replica_set("going", 0, revision="1")
    going = msgspec.structs.replace(
        going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=NOW - timedelta(seconds=1))
    )
    assert removable(rollout(deployment(revisionHistoryLimit=1), None, going, replica_set("b", 0))) == ()


def test_revision_that_cannot_be_read_is_ordered_by_age() -> None:
    old = [
        replica_set("younger", 0, revision="x", age_seconds=10),
        replica_set("older", 0, revision="y", age_seconds=20),
    ]
    found = removable(rollout(deployment(revisionHistoryLimit=1), None, *old))
    assert [each.metadata.name for each in found] == ["older"]
