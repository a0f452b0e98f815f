from __future__ import annotations

import time

import pytest

from podlife.workloads.deployment.annotations import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    ROLLBACK_TO,
    annotations_of_new,
    highest_revision,
    read_count,
    revision_of,
    size_annotations,
)
from tests.unit.workloads.deployment.objects import deployment, replica_set


def test_sizes_are_those_of_the_deployment_with_its_surge() -> None:
    assert size_annotations(deployment(10, surge="25%")) == {DESIRED_REPLICAS: "10", MAX_REPLICAS: "13"}


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("12", 12), ("-1", None), ("x", None), ("", None), ("2147483648", None), ("1_0", None)],
)
def test_count_that_somebody_made_unreadable_is_none(text: str, count: int | None) -> None:
    assert read_count(replica_set(annotations={MAX_REPLICAS: text}), MAX_REPLICAS) == count


def test_revisions_that_cannot_be_read_are_passed_over() -> None:
    known = [replica_set(revision="3"), replica_set(revision="x"), replica_set()]
    assert [revision_of(each) for each in known] == [3, None, 0]
    assert highest_revision(known) == 3
    assert highest_revision([]) == 0


def test_annotations_of_the_deployment_are_copied_except_for_its_own() -> None:
    own = {
        REVISION: "9",
        ROLLBACK_TO: "1",
        DESIRED_REPLICAS: "5",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }
    made = deployment(metadata={"annotations": {**own, "why": "because"}})
    assert annotations_of_new(made, {"kept": "yes"}, 4) == {"kept": "yes", "why": "because", REVISION: "4"}


@pytest.mark.parametrize(
    ("before", "revision", "after"),
    [
        ({}, 1, {REVISION: "1"}),
        # It is the current one already; old ones may have been removed since it got its revision.
        ({REVISION: "5"}, 3, {REVISION: "5"}),
        ({REVISION: "5"}, 5, {REVISION: "5"}),
        ({REVISION: "1"}, 3, {REVISION: "3", REVISION_HISTORY: "1"}),
        ({REVISION: "3", REVISION_HISTORY: "1"}, 5, {REVISION: "5", REVISION_HISTORY: "1,3"}),
        ({REVISION: "x"}, 5, {REVISION: "x"}),
    ],
)
def test_revision_only_grows_and_earlier_ones_become_history(
    before: dict[str, str], revision: int, after: dict[str, str]
) -> None:
    assert annotations_of_new(deployment(), before, revision) == after


def test_history_that_grows_too_long_forgets_the_oldest() -> None:
    history = ",".join(str(number) for number in range(1000, 1400))
    assert len(history) == 1999
    result = annotations_of_new(deployment(), {REVISION: "1400", REVISION_HISTORY: history}, 1402)
    kept = result[REVISION_HISTORY].split(",")
    assert (kept[0], kept[-1], len(result[REVISION_HISTORY])) == ("1001", "1400", 1999)


def test_history_that_somebody_made_endless_is_cut_at_once() -> None:
    """As long as annotations may be. To drop one entry at a time would take minutes, in which nothing else happens."""
    endless = ",".join(["1"] * 130_000)
    started = time.process_time()
    changed = annotations_of_new(deployment(), {REVISION: "5", REVISION_HISTORY: endless}, 6)
    assert time.process_time() - started < 20
    assert changed[REVISION_HISTORY] == ",".join(["1"] * 999 + ["5"])


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9999999999999999999"])
def test_revision_of_more_than_64_bits_cannot_be_read(text: str) -> None:
    assert revision_of(replica_set(revision=text)) is None
