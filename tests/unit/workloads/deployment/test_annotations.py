from __future__ import annotations

import time
from typing import Any

import pytest

from podlife.workloads.deployment.annotations import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    ROLLBACK_TO,
    annotations_of_new,
    highest_revision,
    plan_rollback,
    read_count,
    revision_of,
    rollback_revision,
    size_annotations,
)
from tests.unit.workloads.deployment.objects import deployment, replica_set, rollout, template

NEW = replica_set("new", 1, revision="3")
FIRST = replica_set("first", 0, revision="1", image="i:0", annotations={"why": "first"})
SECOND = replica_set("second", 0, revision="2", image="i:00", annotations={"why": "second"})


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


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("12", 12), ("", None), ("x", None)])
def test_revision_that_is_asked_for_is_read(text: str, expected: int | None) -> None:
    assert rollback_revision(deployment(metadata={"annotations": {ROLLBACK_TO: text}})) == expected


@pytest.mark.parametrize(("revision", "image"), [(1, "i:0"), (2, "i:00"), (0, "i:00")])
def test_template_and_annotations_come_back_and_the_request_goes(revision: int, image: str) -> None:
    plan = plan_rollback(rollout(deployment(), NEW, FIRST, SECOND), revision)
    assert plan.event == (
        "Normal",
        "DeploymentRollback",
        f'Rolled back deployment "web" to revision {revision or 2}',
    )
    annotations = {ROLLBACK_TO: str(revision), REVISION: "3", "why": "third", "more": "gone"}
    current: dict[str, Any] = {
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"replicas": 5, "template": template("i:1")},
    }
    written = plan.apply(current)
    assert written["spec"] == {"replicas": 5, "template": template(image)}
    why = "first" if revision == 1 else "second"
    assert written["metadata"]["annotations"] == {REVISION: "3", "why": why}
    assert ROLLBACK_TO in current["metadata"]["annotations"], "what was given stays as it is"


@pytest.mark.parametrize(
    ("revision", "old", "reason", "message"),
    [
        (0, (), "DeploymentRollbackRevisionNotFound", "Unable to find last revision."),
        (9, (FIRST,), "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."),
        (
            3,
            (FIRST,),
            "DeploymentRollbackTemplateUnchanged",
            'The rollback revision contains the same template as current deployment "web"',
        ),
    ],
)
def test_rollback_that_cannot_be_leaves_all_but_the_request(
    revision: int, old: tuple[Any, ...], reason: str, message: str
) -> None:
    plan = plan_rollback(rollout(deployment(), NEW, *old), revision)
    assert plan.event == ("Warning", reason, message)
    current = {"metadata": {"annotations": {ROLLBACK_TO: "9", "a": "b"}}, "spec": {"template": template()}}
    assert plan.apply(current) == {"metadata": {"annotations": {"a": "b"}}, "spec": {"template": template()}}
