from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.workloads.job.finished_condition import has_completed, judge, time_to_deadline
from podlife.workloads.job.views import Job
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.job.made import ago, context, ended, job, pod


def indexed(completions: int, **spec: Any) -> Job:
    return job(completions=completions, parallelism=completions, completionMode="Indexed", **spec)


def condition(type_: str, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, "reason": "Why", "message": "because"}]}


FAIL_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
IGNORE = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
FAILED = ("FailureTarget", "BackoffLimitExceeded")


@pytest.mark.parametrize(
    ("made", "pods", "verdict"),
    [
        (job(), [], None),
        (job(backoffLimit=1), [pod("Failed")], None),
        (job(backoffLimit=1), [pod("Failed"), pod("Failed")], FAILED),
        (job({"failed": 1}, backoffLimit=1), [pod("Failed")], FAILED),
        # One that has been counted is part of the count, not counted again.
        (job({"failed": 1}, backoffLimit=1), [pod("Failed", is_tracked=False)], None),
        (job({"uncountedTerminatedPods": {"failed": ["a"]}}, backoffLimit=0), [], FAILED),
        (job(backoffLimit=0), [pod("Running", is_going=True)], FAILED),
        (job(backoffLimit=0, podReplacementPolicy="Failed"), [pod("Running", is_going=True)], None),
        (job(backoffLimit=0, podFailurePolicy=IGNORE), [pod("Failed", containerStatuses=[ended(1)])], None),
        (job(backoffLimit=0, podFailurePolicy=IGNORE), [pod("Failed", containerStatuses=[ended(2)])], FAILED),
        # A policy speaks before the limit does.
        (
            job(backoffLimit=0, podFailurePolicy=FAIL_42),
            [pod("Failed", containerStatuses=[ended(42)])],
            ("FailureTarget", "PodFailurePolicy"),
        ),
        # What was decided stays decided, whatever the pods say.
        (
            job(condition("SuccessCriteriaMet"), backoffLimit=0),
            [pod("Failed")],
            ("SuccessCriteriaMet", "Why"),
        ),
        (job(condition("FailureTarget")), [pod("Succeeded")], ("FailureTarget", "Why")),
        (job(condition("FailureTarget", "False")), [pod("Succeeded")], None),
    ],
)
def test_verdict_on_failures(made: Job, pods: list[WorkloadPod], verdict: tuple[str, str] | None) -> None:
    found = judge(context(made, *pods))
    assert (found and (found.type, found.reason)) == verdict


@pytest.mark.parametrize(
    ("limit", "restarts", "phase", "policy", "is_over"),
    [
        (2, 2, "Running", "OnFailure", True),
        (2, 1, "Running", "OnFailure", False),
        (0, 1, "Pending", "OnFailure", True),
        (0, 0, "Running", "OnFailure", False),
        (2, 5, "Succeeded", "OnFailure", False),
        (2, 5, "Running", "Never", False),
    ],
)
def test_restarts_of_containers_count_while_their_pods_live(
    limit: int, restarts: int, phase: str, policy: str, is_over: bool
) -> None:
    made = job(backoffLimit=limit, template={"spec": {"restartPolicy": policy}})
    one = pod(phase, containerStatuses=[{"name": "main", "restartCount": restarts}])
    assert (judge(context(made, one)) is not None) is is_over


@pytest.mark.parametrize(
    ("spec", "status", "left"),
    [
        ({}, {}, None),
        ({"activeDeadlineSeconds": 10}, {}, 10),
        ({"activeDeadlineSeconds": 10}, {"startTime": ago(4)}, 6),
        ({"activeDeadlineSeconds": 10}, {"startTime": ago(10)}, 0),
        ({"activeDeadlineSeconds": 10, "suspend": True}, {"startTime": ago(60)}, None),
        ({"activeDeadlineSeconds": 2**62}, {"startTime": ago(60)}, 10**11 - 60),
        ({"activeDeadlineSeconds": -(2**63)}, {}, -(10**11)),
    ],
)
def test_deadline_runs_from_the_start_unless_the_job_is_suspended(
    spec: dict[str, Any], status: dict[str, Any], left: float | None
) -> None:
    looked_at = context(job(status, **spec))
    assert time_to_deadline(looked_at) == (None if left is None else timedelta(seconds=left))
    verdict = judge(looked_at)
    assert (verdict and verdict.reason) == ("DeadlineExceeded" if left is not None and left <= 0 else None)


SUCCESS = {"rules": [{"succeededIndexes": "1"}]}


@pytest.mark.parametrize(
    ("made", "pods", "reason"),
    [
        # All but the last index are settled, one by failing.
        (indexed(3, backoffLimitPerIndex=0), [pod("Failed", index=0), pod("Succeeded", index=1)], None),
        (
            indexed(2, backoffLimitPerIndex=0),
            [pod("Failed", index=0), pod("Succeeded", index=1)],
            "FailedIndexes",
        ),
        (indexed(2, backoffLimitPerIndex=1), [pod("Failed", index=0), pod("Succeeded", index=1)], None),
        (
            indexed(2, backoffLimitPerIndex=1),
            [pod("Failed", index=0, failures=1), pod("Succeeded", index=1)],
            "FailedIndexes",
        ),
        (
            indexed(9, backoffLimitPerIndex=0, maxFailedIndexes=1),
            [pod("Failed", index=0), pod("Failed", index=4)],
            "MaxFailedIndexesExceeded",
        ),
        (indexed(9, backoffLimitPerIndex=0, maxFailedIndexes=1), [pod("Failed", index=0)], None),
        (indexed(2, successPolicy=SUCCESS), [pod("Succeeded", index=1), pod(index=0)], "SuccessPolicy"),
        (indexed(2, successPolicy=SUCCESS), [pod("Succeeded", index=0), pod(index=1)], None),
        # An index that is none does not succeed.
        (indexed(2, successPolicy=SUCCESS), [pod("Succeeded"), pod("Succeeded", index=7)], None),
    ],
)
def test_verdict_on_indexes(made: Job, pods: list[WorkloadPod], reason: str | None) -> None:
    verdict = judge(context(made, *pods))
    assert (verdict and verdict.reason) == reason


@pytest.mark.parametrize(
    ("made", "pods", "active", "is_complete"),
    [
        (job(completions=2), [pod("Succeeded")], 0, False),
        (job({"succeeded": 1}, completions=2), [pod("Succeeded")], 0, True),
        (job({"succeeded": 1}, completions=2), [pod("Succeeded")], 1, False),
        (job(completions=0), [], 0, True),
        # A work queue is done when one has succeeded and none is at work.
        (job(), [], 0, False),
        (job(), [pod("Succeeded")], 0, True),
        (job(), [pod("Succeeded"), pod()], 1, False),
        (indexed(2), [pod("Succeeded", index=0), pod("Succeeded", index=0)], 0, False),
        (indexed(2), [pod("Succeeded", index=0), pod("Succeeded", index=1)], 0, True),
    ],
)
def test_job_is_complete_with_enough_successes_and_nobody_at_work(
    made: Job, pods: list[WorkloadPod], active: int, is_complete: bool
) -> None:
    assert has_completed(context(made, *pods), active) is is_complete
