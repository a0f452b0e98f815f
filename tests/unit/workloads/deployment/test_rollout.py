from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from podlife.workloads.deployment.rollout import (
    HASH_LABEL,
    is_same_template,
    make_replica_set,
    replica_set_name,
    template_hash,
)
from tests.kit import objects
from tests.unit.workloads.deployment.objects import deployment, template


def changed(**spec: Any) -> dict[str, Any]:
    made = copy.deepcopy(template())
    made["spec"] |= spec
    return made


@pytest.mark.parametrize(
    "other",
    [
        template(**{HASH_LABEL: "abc"}),
        {**template(), "metadata": {"labels": {"app": "web"}, "annotations": {}, "creationTimestamp": None}},
        changed(nodeSelector={}),
        changed(volumes=[], hostNetwork=None),
    ],
)
def test_templates_that_make_the_same_pods_are_the_same(other: dict[str, Any]) -> None:
    assert is_same_template(template(), other)
    assert is_same_template(other, template())
    assert template_hash(template(), None) == template_hash(other, None)


@pytest.mark.parametrize(
    "other",
    [
        template("i:2"),
        template(tier="front"),
        {**template(), "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}},
        changed(nodeSelector={"a": "b"}),
        # An object that is there says something even when it is empty.
        changed(affinity={}),
        changed(volumes=[{"name": "v", "emptyDir": {}}]),
        changed(terminationGracePeriodSeconds=0),
    ],
)
def test_templates_that_make_other_pods_differ(other: dict[str, Any]) -> None:
    assert not is_same_template(template(), other)
    assert template_hash(template(), None) != template_hash(other, None)


def test_hash_changes_with_every_collision_and_can_stand_in_a_name() -> None:
    hashes = [template_hash(template(), collisions) for collisions in (None, 0, 1, 2)]
    assert len(set(hashes)) == 4
    assert all(re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{1,10}", each) for each in hashes)


def test_name_is_never_too_long_for_the_server() -> None:
    assert replica_set_name("web", "abc") == "web-abc"
    assert len(replica_set_name("w" * 253, "0123456789")) == 253


def test_replica_set_is_the_deployments_with_its_hash_in_labels_selector_and_template() -> None:
    made = make_replica_set(deployment(minReadySeconds=5, status={"collisionCount": 1}), 3, {"a": "b"})
    metadata, spec = made["metadata"], made["spec"]
    hash_ = metadata["labels"][HASH_LABEL]
    assert hash_ == template_hash(template(), 1)
    assert metadata["name"] == f"web-{hash_}"
    assert metadata["namespace"] == "default"
    assert metadata["annotations"] == {"a": "b"}
    assert metadata["ownerReferences"] == [
        {**objects.owner("Deployment", "web", uid="uid-web"), "blockOwnerDeletion": True}
    ]
    labels = {"app": "web", HASH_LABEL: hash_}
    assert metadata["labels"] == spec["template"]["metadata"]["labels"] == labels
    assert spec["selector"] == {"matchLabels": labels}
    assert (spec["replicas"], spec["minReadySeconds"]) == (3, 5)
    assert spec["template"]["spec"] == template()["spec"]


def test_expressions_of_the_selector_are_kept() -> None:
    wanted = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    selector = make_replica_set(deployment(selector=wanted), 1, {})["spec"]["selector"]
    assert selector["matchExpressions"] == wanted["matchExpressions"]
    assert set(selector["matchLabels"]) == {HASH_LABEL}


@pytest.mark.parametrize("collisions", [-1, -(2**31), 2**31 - 1])
def test_any_collision_count_that_can_be_stored_gives_another_hash(collisions: int) -> None:
    assert template_hash(template(), collisions) != template_hash(template(), None)
