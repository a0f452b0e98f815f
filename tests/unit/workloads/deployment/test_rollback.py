from __future__ import annotations

from typing import Any

import pytest

from podlife.workloads.deployment.annotations import REVISION, ROLLBACK_TO, plan_rollback, rollback_revision
from tests.unit.workloads.deployment.objects import deployment, replica_set, rollout, template

NEW = replica_set("new", 1, revision="3")
FIRST = replica_set("first", 0, revision="1", image="i:0", annotations={"why": "first"})
SECOND = replica_set("second", 0, revision="2", image="i:00", annotations={"why": "second"})


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
