"""What a ReplicaSet's status says, as the server encodes it."""

from __future__ import annotations

import pytest

from podlife.api.selectors import label_selector_from_dict
from podlife.errors import ForbiddenError
from podlife.workloads.replicaset.status import affects_status, count_labelled, new_status, sort_pods
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.replicaset.made import NOW, pod, replica_set

FAILED = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no: 403"}
TIME = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
LABELS = {"app": "web"}
SELECTOR = label_selector_from_dict({"matchLabels": LABELS})


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
        4, minReadySeconds=30, template={"metadata": {"labels": {"app": "web", "version": "0"}}, "spec": {}}
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
def test_a_failure_becomes_a_condition_with_what_failed(active: list[WorkloadPod], reason: str) -> None:
    status = new_status(replica_set(1), active, [], ForbiddenError("no: 403"), NOW)
    assert status["conditions"] == [{**FAILED, **TIME, "reason": reason}]


def test_a_failure_that_goes_on_is_told_as_it_was_first() -> None:
    known = {**FAILED, "lastTransitionTime": "2029-12-31T00:00:00Z"}
    old = replica_set(1, status={"conditions": [known]})
    assert new_status(old, [], [], ForbiddenError("another"), NOW)["conditions"] == [known]


def test_a_failure_that_is_over_leaves_no_condition() -> None:
    old = replica_set(1, status={"conditions": [{**FAILED, **TIME}]})
    assert "conditions" not in new_status(old, [pod()], [], None, NOW)


def names(pods: list[WorkloadPod]) -> list[str]:
    return [each.metadata.name for each in pods]


def test_own_pods_are_active_until_they_end_or_go() -> None:
    owned = [
        pod("runs"),
        pod("waits", phase="Pending"),
        pod("failed", phase="Failed"),
        pod("done", phase="Succeeded"),
        pod("goes", is_going=True),
        pod("failed-and-goes", phase="Failed", is_going=True),
    ]
    found = sort_pods(owned, [], SELECTOR, LABELS)
    assert names(found.active) == ["runs", "waits"]
    assert names(found.terminating) == ["goes"]
    assert found.claimable == []


def test_own_pod_that_is_not_selected_any_more_is_to_be_released_unless_it_goes_anyway() -> None:
    other = {"app": "debug"}
    owned = [
        pod("relabelled", labels=other),
        pod("goes", labels=other, is_going=True),
        pod("bare", labels={}),
    ]
    found = sort_pods(owned, [], SELECTOR, LABELS)
    assert (found.active, found.terminating) == ([], [])
    assert names(found.claimable) == ["relabelled", "bare"]


def test_orphan_is_to_be_adopted_if_it_is_selected_and_alive() -> None:
    orphans = [
        pod("match", labels={"app": "web", "more": "yes"}),
        pod("stranger", labels={"app": "other"}),
        pod("ended", phase="Failed"),
        pod("goes", is_going=True),
    ]
    found = sort_pods([], orphans, SELECTOR, LABELS)
    assert (found.active, found.terminating) == ([], [])
    assert names(found.claimable) == ["match"]


def test_pods_with_the_labels_of_a_template_that_the_selector_does_not_select_are_not_its_own() -> None:
    labels = {"app": "elsewhere"}
    found = sort_pods([pod(labels=labels)], [], SELECTOR, labels)
    assert found.active == []
    assert names(found.claimable) == ["web-a"]


@pytest.mark.parametrize(
    ("labels", "is_counted"),
    [({"app": "web"}, True), ({"app": "web", "more": "yes"}, True), ({"app": "x"}, False), ({}, False)],
)
def test_fully_labelled_are_pods_with_all_labels_of_the_template(
    labels: dict[str, str], is_counted: bool
) -> None:
    assert count_labelled([pod(labels=labels)], LABELS) == is_counted


@pytest.mark.parametrize(
    ("old", "new", "is_other"),
    [
        (pod(), pod(), False),
        (pod(phase="Pending"), pod(phase="Running"), False),
        (pod(), pod(phase="Failed"), True),
        (pod(phase="Pending"), pod(phase="Succeeded"), True),
        (pod(phase="Failed"), pod(phase="Succeeded"), False),
        (pod(), pod(ready_for=0), True),
        (pod(ready_for=5), pod(), True),
        (pod(ready_for=5), pod(ready_for=1), True),
        (pod(ready_for=5), pod(ready_for=5), False),
        (pod(ready_for=5), pod(ready_for=5, annotations={"note": "new"}), False),
    ],
)
def test_a_change_counts_if_the_pod_ends_or_its_readiness_changes(
    old: WorkloadPod, new: WorkloadPod, is_other: bool
) -> None:
    assert affects_status(old, new) == is_other
