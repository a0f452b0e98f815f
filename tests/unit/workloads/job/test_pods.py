from __future__ import annotations

from datetime import timedelta

import pytest

from podlife.workloads.job.pods import completion_index, failures_of_index, finished_at, has_failed
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.job.made import NOW, ago, ended, job, pod


@pytest.mark.parametrize(
    ("made", "replaces_going", "replaces_failed"),
    [
        (pod("Running"), False, False),
        (pod("Failed"), True, True),
        (pod("Succeeded"), False, False),
        (pod("Succeeded", is_going=True), False, False),
        (pod("Failed", is_going=True), True, True),
        # It may yet succeed, so where that counts it is waited for.
        (pod("Running", is_going=True), True, False),
    ],
)
def test_pod_that_is_going_has_failed_only_where_it_is_replaced_at_once(
    made: WorkloadPod, replaces_going: bool, replaces_failed: bool
) -> None:
    assert has_failed(made, job(podReplacementPolicy="TerminatingOrFailed").spec) is replaces_going
    assert has_failed(made, job(podReplacementPolicy="Failed").spec) is replaces_failed
    # A policy has to see how the pod ends.
    assert has_failed(made, job(podFailurePolicy={"rules": []}).spec) is replaces_failed


@pytest.mark.parametrize(
    ("text", "index"), [("0", 0), ("12", 12), ("-1", None), ("x", None), ("", None), ("1_0", None)]
)
def test_index_that_is_no_number_is_none(text: str, index: int | None) -> None:
    assert completion_index(pod(index=text)) == index


@pytest.mark.parametrize(("text", "failures"), [("3", 3), ("-1", 0), ("lots", 0), (str(2**31), 0)])
def test_count_that_somebody_wrote_by_hand_is_nothing(text: str, failures: int) -> None:
    made = pod(metadata={"annotations": {"batch.kubernetes.io/job-index-failure-count": text}})
    assert failures_of_index(made) == failures


SIDECAR = {"initContainers": [{"name": "beside", "restartPolicy": "Always"}, {"name": "before"}]}
NOT_READY = {"type": "Ready", "status": "False", "lastTransitionTime": ago(20)}


@pytest.mark.parametrize(
    ("made", "seconds_ago"),
    [
        (pod("Failed", containerStatuses=[ended(1, 9), ended(0, 7, "other")]), 7),
        # A sidecar ends after the others; what ran before them is of no account.
        (
            pod(
                "Failed",
                spec=SIDECAR,
                containerStatuses=[ended(1, 9)],
                initContainerStatuses=[ended(0, 3, "beside"), ended(0, 1, "before")],
            ),
            3,
        ),
        # One that has not ended leaves it to the condition.
        (pod("Failed", containerStatuses=[ended(1, 9), {"name": "other"}], conditions=[NOT_READY]), 20),
        (
            pod(
                "Failed",
                spec=SIDECAR,
                containerStatuses=[ended(1, 9)],
                initContainerStatuses=[{"name": "beside"}],
                conditions=[NOT_READY],
            ),
            20,
        ),
        # It was asked to go half a minute before it had to.
        (pod("Running", is_going=True), 30),
        (pod("Failed"), 60),
    ],
)
def test_end_of_a_pod_is_when_its_containers_ended_or_the_next_best_guess(
    made: WorkloadPod, seconds_ago: float
) -> None:
    assert finished_at(made) == NOW - timedelta(seconds=seconds_ago)


@pytest.mark.parametrize("grace", [10**11, 2**63 - 1])
def test_pod_with_more_grace_than_there_are_years_has_an_end_all_the_same(grace: int) -> None:
    """kube-apiserver sets no bound to it."""
    going = pod("Running", metadata={"deletionTimestamp": ago(0), "deletionGracePeriodSeconds": grace})
    assert finished_at(going) <= NOW
