"""Which pods a ReplicaSet has, which it may have, and which of their changes are anything to it."""

from __future__ import annotations

import pytest

from podlife.api.selectors import label_selector_from_dict
from podlife.workloads.replicaset.status import count_labelled, has_other_worth, sort_pods
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.replicaset.made import pod

LABELS = {"app": "web"}
SELECTOR = label_selector_from_dict({"matchLabels": LABELS})


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
    assert has_other_worth(old, new) == is_other
