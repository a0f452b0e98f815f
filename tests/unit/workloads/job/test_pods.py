from __future__ import annotations

from datetime import timedelta

import pytest

from podlife.workloads.job.pods import (
    PodBackoff,
    completion_index,
    failures_of_index,
    finished_at,
    has_failed,
    wait_of_index,
)
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


def failed(seconds_ago: float, failures: int | None = None) -> WorkloadPod:
    return pod("Failed", containerStatuses=[ended(1, seconds_ago)], index=0, failures=failures)


def succeeded(seconds_ago: float) -> WorkloadPod:
    return pod("Succeeded", containerStatuses=[ended(0, seconds_ago)])


def at(seconds_ago: float) -> object:
    return NOW - timedelta(seconds=seconds_ago)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (8, 600), (10**6, 600)]
)
def test_wait_doubles_from_ten_seconds_to_ten_minutes(failures: int, seconds: float) -> None:
    assert PodBackoff(failures, NOW if failures else None).wait(NOW) == timedelta(seconds=seconds)


def test_time_since_the_last_failure_is_part_of_the_wait() -> None:
    assert PodBackoff(1, NOW - timedelta(seconds=4)).wait(NOW) == timedelta(seconds=6)
    assert PodBackoff(1, NOW - timedelta(seconds=11)).wait(NOW) == timedelta(0)


@pytest.mark.parametrize(
    ("ends", "failures", "last"),
    [
        (((), ()), 2, 50),
        (((), (5, 9)), 4, 5),
        # A success ends the row.
        (((7,), ()), 0, None),
        (((7,), (9, 8)), 0, None),
        (((7,), (9, 5, 3)), 2, 3),
        (((9, 4), (5, 3)), 1, 3),
        # At the same moment the success is the later one.
        (((5,), (5,)), 0, None),
    ],
)
def test_failures_are_counted_since_the_last_success(
    ends: tuple[tuple[int, ...], tuple[int, ...]], failures: int, last: float | None
) -> None:
    before = PodBackoff(2, NOW - timedelta(seconds=50))
    after = before.after([succeeded(each) for each in ends[0]], [failed(each) for each in ends[1]])
    assert (after.failures, after.last_failure) == (failures, None if last is None else at(last))


def test_index_waits_by_its_own_failures() -> None:
    assert wait_of_index(None, NOW) == timedelta(0)
    assert wait_of_index(failed(0), NOW) == timedelta(seconds=10)
    assert wait_of_index(failed(5, failures=2), NOW) == timedelta(seconds=35)
