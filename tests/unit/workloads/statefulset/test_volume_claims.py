"""Which claims are made, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.client import STATEFUL_SETS
from podlife.podcontrol import owner_of
from podlife.workloads.statefulset.volume_claims import (
    Claimant,
    claim_work,
    has_stale_claim,
    new_claim,
    reference_change,
)
from tests.unit.workloads.statefulset.objects import DATA, SET_UID, claim, reference, stateful_set

SET = reference("StatefulSet", "web", SET_UID)
POD = reference("Pod", "web-1", "uid-of-web-1")
FOREIGN = reference("ConfigMap", "somebody", "uid-of-somebody")
OTHER_SET = reference("StatefulSet", "web", "uid-of-the-one-before")
OTHER_POD = reference("Pod", "web-1", "uid-of-the-one-before")


def policy(deleted: str, scaled: str) -> dict[str, Any]:
    return {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}


def references_after(found: list[Any], deleted: str, scaled: str, *, replicas: int) -> list[str] | None:
    """The UIDs of who owns the claim of web-1 afterwards; None when it is left alone."""
    of = stateful_set(replicas, **policy(deleted, scaled))
    change = reference_change(
        of, Claimant("web-1", 1, "uid-of-web-1"), owner_of(of, STATEFUL_SETS), claim("data-web-1", *found)
    )
    if change is None:
        return None
    kept = {each["uid"] for each in found} - {*change.remove}
    return sorted(kept | {each.uid for each in change.add})


@pytest.mark.parametrize(
    ("found", "deleted", "scaled", "replicas", "after"),
    [
        # Nobody's, and to be kept.
        ([], "Retain", "Retain", 3, None),
        ([], "Retain", "Retain", 1, None),
        # To go with the set.
        ([], "Delete", "Retain", 3, [SET_UID]),
        ([], "Delete", "Retain", 1, [SET_UID]),
        ([SET], "Delete", "Retain", 3, None),
        # To go with its pod, once that is too many.
        ([], "Retain", "Delete", 3, None),
        ([], "Retain", "Delete", 1, ["uid-of-web-1"]),
        ([POD], "Retain", "Delete", 1, None),
        ([POD], "Retain", "Delete", 3, []),
        # Either: the pod's once it is too many, the set's until then.
        ([], "Delete", "Delete", 3, [SET_UID]),
        ([SET], "Delete", "Delete", 1, ["uid-of-web-1"]),
        ([POD], "Delete", "Delete", 3, [SET_UID]),
        ([SET], "Delete", "Delete", 3, None),
        # The policy was changed.
        ([SET], "Retain", "Retain", 3, []),
        ([POD, SET], "Retain", "Retain", 3, []),
        ([SET], "Retain", "Delete", 3, []),
        # An owner that does not control it has to.
        ([{**SET, "controller": None}], "Delete", "Retain", 3, [SET_UID]),
        # Others who have a say.
        ([FOREIGN], "Delete", "Delete", 1, None),
        ([FOREIGN, {**SET, "controller": False}], "Delete", "Retain", 3, ["uid-of-somebody"]),
        ([{**FOREIGN, "controller": None}], "Delete", "Retain", 3, [SET_UID, "uid-of-somebody"]),
        # A set or a pod of the same name that is no more: the garbage collector will see to it.
        ([OTHER_SET], "Delete", "Delete", 3, None),
        ([OTHER_POD], "Delete", "Delete", 1, None),
        ([OTHER_POD], "Retain", "Retain", 3, None),
    ],
)
def test_a_claim_is_owned_by_who_it_should_go_with(
    found: list[Any], deleted: str, scaled: str, replicas: int, after: list[str] | None
) -> None:
    assert references_after(found, deleted, scaled, replicas=replicas) == after


def test_a_change_holds_only_for_the_claim_that_was_looked_at() -> None:
    of = stateful_set(1, **policy("Delete", "Delete"))
    change = reference_change(
        of, Claimant("web-1", 1, "uid-of-web-1"), owner_of(of, STATEFUL_SETS), claim("data-web-1", SET)
    )
    assert change is not None
    assert change.patch() == {
        "metadata": {
            "uid": "uid-of-data-web-1",
            "resourceVersion": "7",
            "ownerReferences": [{"$patch": "delete", "uid": SET_UID}, {**POD, "blockOwnerDeletion": True}],
        }
    }


def test_a_new_claim_is_that_of_the_template_with_the_labels_of_the_selector() -> None:
    of = stateful_set(**policy("Delete", "Retain"))
    metadata = {"name": "data", "labels": {"disk": "fast", "app": "template"}, "annotations": {"a": "b"}}
    template: dict[str, Any] = {**DATA, "metadata": metadata, "status": {"phase": "Pending"}}
    made = new_claim(of, owner_of(of, STATEFUL_SETS), template, "data-web-0")
    assert made == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data-web-0",
            "namespace": "default",
            "labels": {"disk": "fast", "app": "web"},
            "annotations": {"a": "b"},
            "ownerReferences": [{**SET, "blockOwnerDeletion": True}],
        },
        "spec": DATA["spec"],
    }
    assert template["metadata"]["name"] == "data"


def test_a_claim_that_is_to_be_kept_is_made_for_nobody() -> None:
    of = stateful_set(**policy("Retain", "Delete"))
    assert "ownerReferences" not in new_claim(of, owner_of(of, STATEFUL_SETS), DATA, "data-web-0")["metadata"]


def test_what_is_missing_is_made_and_what_goes_stands_in_the_way() -> None:
    logs = {"metadata": {"name": "logs"}, "spec": {}}
    of = stateful_set(volumeClaimTemplates=[DATA, logs], **policy("Delete", "Retain"))
    known = {"logs-web-0": claim("logs-web-0", FOREIGN, going=True)}
    pod = Claimant("web-0", 0)
    work = claim_work(of, pod, owner_of(of, STATEFUL_SETS), known.get, make=True)
    assert [each["metadata"]["name"] for each in work.create] == ["data-web-0"]
    assert work.going == ("logs-web-0",)
    assert work.conflicting == ("logs-web-0",)
    assert work.changes == ()
    unmade = claim_work(of, pod, owner_of(of, STATEFUL_SETS), known.get, make=False)
    assert (unmade.create, unmade.going) == ((), ())
    assert not claim_work(stateful_set(), pod, owner_of(of, STATEFUL_SETS), known.get, make=True)


@pytest.mark.parametrize(
    ("scaled", "found", "stale"),
    [
        ("Delete", [OTHER_POD], True),
        ("Delete", [], False),
        ("Delete", [SET], False),
        ("Retain", [OTHER_POD], False),
    ],
)
def test_a_claim_that_goes_with_an_earlier_pod_is_waited_for(
    scaled: str, found: list[Any], stale: bool
) -> None:
    of = stateful_set(volumeClaimTemplates=[DATA], **policy("Retain", scaled))
    known = {"data-web-1": claim("data-web-1", *found)}
    assert has_stale_claim(of, Claimant("web-1", 1), "web", known.get) is stale
