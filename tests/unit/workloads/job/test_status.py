"""Counting: a pod goes from its finalizer into the status, loses the finalizer, and becomes part of a count."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.workloads.job.finished_condition import COMPLETED
from podlife.workloads.job.status import (
    Account,
    Activity,
    account,
    finish,
    settle,
    with_start,
    with_suspension,
    with_verdict,
)
from podlife.workloads.job.views import Job
from podlife.workloads.status import ConditionDict
from podlife.workloads.views import WorkloadPod
from tests.kit import objects
from tests.unit.workloads.job.made import NOW, ago, context, ended, job, pod

IDLE = Activity(0, 0, 0)
FAILED = ConditionDict("FailureTarget", "True", "Why", "because")
NOTHING: dict[str, Any] = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}


def accounted(made: Job, *pods: WorkloadPod, verdict: ConditionDict | None = None) -> Account:
    return account(context(made, *pods), made.status, IDLE, verdict)


def uid(one: WorkloadPod) -> str:
    return one.metadata.uid


def test_counts_that_are_zero_are_left_out_but_for_ready_and_terminating() -> None:
    assert accounted(job()).status == NOTHING
    looked_at = context(job())
    assert account(looked_at, {}, Activity(3, 2, 1), None).status == {
        "active": 3,
        "ready": 2,
        "terminating": 1,
        "uncountedTerminatedPods": {},
    }


def test_pods_that_have_finished_are_named_before_they_are_let_go() -> None:
    done, failed, running = pod("Succeeded"), pod("Failed"), pod()
    made = accounted(job(completions=9), done, failed, running)
    assert made.status["uncountedTerminatedPods"] == {"succeeded": [uid(done)], "failed": [uid(failed)]}
    assert made.release == [done, failed]
    assert "succeeded" not in made.status


def test_pod_that_is_named_already_is_not_named_twice() -> None:
    done = pod("Succeeded")
    made = accounted(job({"uncountedTerminatedPods": {"succeeded": [uid(done)]}}), done)
    assert made.status["uncountedTerminatedPods"] == {"succeeded": [uid(done)]}
    assert made.release == [done]


def test_pod_that_was_named_as_failed_and_succeeds_after_all_stays_failed() -> None:
    done = pod("Succeeded")
    made = accounted(job({"uncountedTerminatedPods": {"failed": [uid(done)]}}), done)
    assert made.status["uncountedTerminatedPods"] == {"failed": [uid(done)]}


def test_named_pod_without_a_finalizer_is_counted() -> None:
    let_go = pod("Succeeded", is_tracked=False)
    status = {"succeeded": 3, "uncountedTerminatedPods": {"succeeded": [uid(let_go)], "failed": ["gone"]}}
    made = accounted(job(status), let_go)
    assert made.status == {**NOTHING, "succeeded": 4, "failed": 1}
    assert made.release == []


def test_settling_twice_counts_once() -> None:
    status = {"failed": 1, "uncountedTerminatedPods": {"succeeded": ["a", "b"], "failed": ["c"]}}
    once = settle(status, {"b"})
    assert once == {"succeeded": 1, "failed": 2, "uncountedTerminatedPods": {"succeeded": ["b"]}}
    assert settle(once, {"b"}) == once
    assert status["uncountedTerminatedPods"] == {"succeeded": ["a", "b"], "failed": ["c"]}


def test_ignored_failure_is_let_go_and_counts_as_nothing() -> None:
    policy = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
    ignored = pod("Failed", containerStatuses=[ended(1)])
    made = accounted(job(podFailurePolicy=policy), ignored)
    assert (made.status, made.release) == (NOTHING, [ignored])


def test_going_pod_is_counted_when_it_is_replaced() -> None:
    going = pod(is_going=True)
    assert accounted(job(), going).status["uncountedTerminatedPods"] == {"failed": [uid(going)]}
    assert accounted(job(podReplacementPolicy="Failed"), going).release == []


@pytest.mark.parametrize(("verdict", "named"), [(FAILED, True), (COMPLETED, False)])
def test_job_that_ends_lets_all_pods_go_and_counts_them_only_if_it_failed(
    verdict: ConditionDict, named: bool
) -> None:
    running = pod()
    made = accounted(job(), running, verdict=verdict)
    assert made.release == [running]
    assert bool(made.status["uncountedTerminatedPods"]) is named


def test_job_that_is_deleted_lets_all_pods_go_uncounted() -> None:
    running = pod()
    made = accounted(job(metadata={"deletionTimestamp": ago(1)}), running)
    assert (made.status, made.release) == (NOTHING, [running])


def test_index_itself_says_that_it_has_succeeded() -> None:
    pods = [pod("Succeeded", index=2), pod("Succeeded", index=0), pod("Succeeded", index=0)]
    spec: dict[str, Any] = {"completions": 4, "completionMode": "Indexed"}
    made = accounted(job({"completedIndexes": "3", "succeeded": 1}, **spec), *pods)
    assert made.status == {**NOTHING, "succeeded": 3, "completedIndexes": "0,2,3"}
    assert {uid(each) for each in made.release} == {uid(each) for each in pods}


def test_pods_beyond_the_last_index_count_as_nothing_and_are_let_go() -> None:
    pods = [pod("Failed", index=7), pod("Succeeded", index=9), pod("Failed")]
    made = accounted(job(completions=2, completionMode="Indexed"), *pods)
    assert made.status == NOTHING
    assert len(made.release) == 3


def test_failed_pod_of_an_index_stays_until_its_replacement_is_there() -> None:
    spec: dict[str, Any] = {"completions": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 3}
    failed = pod("Failed", index=1)
    waiting = accounted(job(**spec), failed)
    assert (waiting.release, waiting.status["failedIndexes"]) == ([], "")
    replaced = accounted(job(**spec), failed, pod(index=1, failures=1))
    assert replaced.status["uncountedTerminatedPods"] == {"failed": [uid(failed)]}
    spent = accounted(job(**spec), last := pod("Failed", index=1, failures=3))
    assert (spent.release, spent.status["failedIndexes"]) == ([last], "1")


def test_status_names_no_more_than_five_hundred_pods() -> None:
    pods = [pod("Succeeded") for _ in range(501)]
    made = accounted(job(completions=600), *pods)
    assert len(made.status["uncountedTerminatedPods"]["succeeded"]) == len(made.release) == 500
    assert not made.is_whole


# The end


def test_job_is_finished_when_nothing_is_left_to_count_or_to_go() -> None:
    for left in ({"uncountedTerminatedPods": {"failed": ["a"]}}, {"terminating": 1}):
        assert finish(left, COMPLETED, NOW) is None
    status = finish(with_verdict({"succeeded": 1}, COMPLETED, NOW), COMPLETED, NOW)
    assert status is not None
    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["completionTime"] == ago(0)
    failed = finish(with_verdict({}, FAILED, NOW), FAILED, NOW)
    assert failed is not None
    assert failed["conditions"][1] == objects.condition(
        "Failed", "True", reason="Why", message="because", lastProbeTime=ago(0), lastTransitionTime=ago(0)
    )
    assert "completionTime" not in failed


def test_verdict_that_stands_keeps_its_time() -> None:
    once = with_verdict({}, FAILED, NOW - timedelta(seconds=60))
    assert with_verdict(once, FAILED, NOW) == once


# Suspended


def test_job_starts_when_it_is_first_looked_at_unless_it_is_suspended() -> None:
    assert with_start({}, is_suspended=False, now=NOW) == {"startTime": ago(0)}
    assert with_start({}, is_suspended=True, now=NOW) == {}
    assert with_start({"startTime": ago(9)}, is_suspended=False, now=NOW) == {"startTime": ago(9)}


def test_suspended_job_has_not_started_and_a_resumed_one_starts_anew() -> None:
    suspended = with_suspension({"startTime": ago(99)}, is_suspended=True, now=NOW)
    assert "startTime" not in suspended
    assert [(each["status"], each["reason"]) for each in suspended["conditions"]] == [
        ("True", "JobSuspended")
    ]
    assert with_suspension(suspended, is_suspended=True, now=NOW + timedelta(1)) == suspended
    resumed = with_suspension(suspended, is_suspended=False, now=NOW)
    assert resumed["startTime"] == ago(0)
    assert [(each["status"], each["reason"]) for each in resumed["conditions"]] == [("False", "JobResumed")]


def test_job_that_never_was_suspended_does_not_say_so() -> None:
    assert with_suspension({"startTime": ago(9)}, is_suspended=False, now=NOW) == {"startTime": ago(9)}
