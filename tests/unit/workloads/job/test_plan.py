from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.workloads.job.plan import JobPlan, plan
from podlife.workloads.job.pods import PodBackoff
from podlife.workloads.job.views import Job
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.job.made import NOW, context, ended, job, pod


def indexed(completions: int, parallelism: int, **spec: Any) -> Job:
    return job(completions=completions, parallelism=parallelism, completionMode="Indexed", **spec)


def planned(made: Job, *pods: WorkloadPod) -> JobPlan:
    return plan(context(made, *pods))


@pytest.mark.parametrize(
    ("made", "pods", "create"),
    [
        (job(completions=5, parallelism=2), [], 2),
        (job(completions=5, parallelism=2), [pod()], 1),
        (job(completions=5, parallelism=2), [pod(), pod()], 0),
        # No more than are still wanted.
        (job({"succeeded": 4}, completions=5, parallelism=3), [], 1),
        (job({"succeeded": 4}, completions=5, parallelism=3), [pod("Succeeded")], 0),
        (job(completions=5, parallelism=0), [], 0),
        # A work queue: as many as work at once, until one has succeeded.
        (job(parallelism=3), [pod()], 2),
        (job(parallelism=3), [pod(), pod("Succeeded")], 0),
        # One that is going is replaced at once, or when it has failed.
        (job(parallelism=2, completions=2, podReplacementPolicy="Failed"), [pod(is_going=True)], 1),
        (job(parallelism=2, completions=2, podFailurePolicy={"rules": []}), [pod(is_going=True)], 1),
        (job(parallelism=1000, completions=1000), [], 500),
    ],
)
def test_so_many_pods_are_made(made: Job, pods: list[WorkloadPod], create: int) -> None:
    assert planned(made, *pods) == JobPlan(create=create)


def test_pod_that_failed_is_replaced_after_ten_seconds() -> None:
    made = job(completions=3, parallelism=2)
    failed = pod("Failed", containerStatuses=[ended(1, 4)])
    assert planned(made, failed) == JobPlan(wait=timedelta(seconds=6))
    # What is known from before counts as well.
    before = PodBackoff(2, NOW - timedelta(seconds=100))
    assert plan(context(made, failed, backoff=before)) == JobPlan(wait=timedelta(seconds=36))
    assert planned(made, pod("Failed", containerStatuses=[ended(1, 11)])) == JobPlan(create=2)


@pytest.mark.parametrize(
    ("made", "pods", "indexes"),
    [
        (indexed(5, 3), [], (0, 1, 2)),
        (indexed(5, 3), [pod(index=1)], (0, 2)),
        (indexed(5, 3, status={"completedIndexes": "0-2"}), [], (3, 4)),
        (indexed(5, 3, status={"completedIndexes": "0"}), [pod("Succeeded", index=2)], (1, 3, 4)),
        (indexed(3, 3, podReplacementPolicy="Failed"), [pod(index=1, is_going=True)], (0, 2)),
        # An index that has failed for itself is not tried again, and one that waits does not keep the others.
        (indexed(4, 4, backoffLimitPerIndex=0), [pod("Failed", index=1)], (0, 2, 3)),
        (
            indexed(3, 3, backoffLimitPerIndex=3),
            [pod("Failed", index=1, containerStatuses=[ended(1, 2)])],
            (0, 2),
        ),
        (
            indexed(3, 3, backoffLimitPerIndex=3),
            [pod("Failed", index=1, containerStatuses=[ended(1, 12)])],
            (0, 1, 2),
        ),
    ],
)
def test_indexes_that_have_no_pod_are_made_the_lowest_first(
    made: Job, pods: list[WorkloadPod], indexes: tuple[int, ...]
) -> None:
    assert planned(made, *pods) == JobPlan(create=len(indexes), indexes=indexes)


def test_when_all_indexes_wait_the_first_to_come_decides() -> None:
    made = indexed(2, 2, backoffLimitPerIndex=5)
    pods = [
        pod("Failed", index=0, containerStatuses=[ended(1, 2)]),
        pod("Failed", index=1, failures=1, containerStatuses=[ended(1, 15)]),
    ]
    assert planned(made, *pods) == JobPlan(wait=timedelta(seconds=5))


def test_surplus_pods_go_those_first_that_have_come_least_far() -> None:
    running, pending = pod(spec={"nodeName": "a"}), pod("Pending")
    assert planned(job(completions=3, parallelism=1), running, pending).delete == (pending,)
    assert planned(job(completions=3, parallelism=0), running, pending).delete == (pending, running)


def test_index_keeps_one_pod_and_pods_without_a_valid_index_go() -> None:
    kept, twin = pod(index=0, spec={"nodeName": "a"}), pod("Pending", index=0)
    stray, beyond = pod(), pod(index=7)
    wanted = planned(indexed(3, 3), kept, twin, stray, beyond)
    assert {each.metadata.uid for each in wanted.delete} == {
        each.metadata.uid for each in (twin, stray, beyond)
    }
    # Deleting comes first: what is missing is made in the next pass.
    assert not wanted.create


def test_suspended_job_has_no_pods_at_work() -> None:
    pods = [pod(), pod("Pending"), pod("Succeeded"), pod(is_going=True)]
    assert planned(job(completions=9, parallelism=9, suspend=True), *pods) == JobPlan(delete=tuple(pods[:2]))


def test_no_more_than_so_many_are_deleted_at_once() -> None:
    pods = [pod() for _ in range(7)]
    assert len(plan(context(job(completions=9, parallelism=1), *pods), most=4).delete) == 4
