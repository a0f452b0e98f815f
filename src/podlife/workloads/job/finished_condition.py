"""Whether it is decided how a Job ends, and with which reason and message. Pure.

A verdict is an interim condition, SuccessCriteriaMet or FailureTarget. It is written before anything is done about it
and stands from then on; Complete or Failed follows when the last pod has gone and been counted.
"""

from __future__ import annotations

from datetime import timedelta

from podlife.workloads.conditions import Condition, find_condition
from podlife.workloads.job.pods import has_failed
from podlife.workloads.job.policies import met_success_rule, rule_on_failure
from podlife.workloads.job.sync_context import Situation
from podlife.workloads.job.views import start_time
from podlife.workloads.views import Status

__all__ = [
    "COMPLETED",
    "FAILURE_TARGET",
    "SUCCESS_CRITERIA_MET",
    "final_condition",
    "has_completed",
    "judge",
    "time_to_deadline",
    "written_verdict",
]

SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
FAILURE_TARGET = "FailureTarget"
COMPLETED = Condition(
    SUCCESS_CRITERIA_MET, "True", "CompletionsReached", "Reached expected number of succeeded pods"
)
_FINAL = {SUCCESS_CRITERIA_MET: "Complete", FAILURE_TARGET: "Failed"}


def judge(situation: Situation) -> Condition | None:
    """The verdict that was written already, or the one that is due now; None while pods may still be needed. That all
    completions are there is seen later: see `has_completed`."""
    return (
        written_verdict(situation.job.status)
        or _failed_by_policy(situation)
        or _failed_by_limits(situation)
        or _decided_by_indexes(situation)
    )


def has_completed(situation: Situation, active: int) -> bool:
    """Whether nothing is left to do, with so many pods at work."""
    if active:
        return False
    completions = situation.spec.completions
    return situation.succeeded > 0 if completions is None else situation.succeeded >= completions


def final_condition(verdict: Condition) -> Condition:
    return Condition(_FINAL[verdict.type], "True", verdict.reason, verdict.message)


def time_to_deadline(situation: Situation) -> timedelta | None:
    """How long the Job may still be active; None where there is no such bound."""
    seconds = situation.spec.active_deadline_seconds
    if seconds is None or situation.spec.suspend:
        return None
    started = start_time(situation.job.status) or situation.now
    return _bounded(seconds) - (situation.now - started)


def written_verdict(status: Status) -> Condition | None:
    for type_ in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        found = find_condition(status.get("conditions"), type_)
        if found is not None and found.get("status") == "True":
            return Condition(type_, "True", found.get("reason", ""), found.get("message", ""))
    return None


def _failed(reason: str, message: str) -> Condition:
    return Condition(FAILURE_TARGET, "True", reason, message)


def _failed_by_policy(situation: Situation) -> Condition | None:
    policy = situation.spec.pod_failure_policy
    if policy is None:
        return None
    for pod in situation.pods:
        if has_failed(pod, situation.spec) and (message := rule_on_failure(policy, pod).message):
            return _failed("PodFailurePolicy", message)
    return None


def _failed_by_limits(situation: Situation) -> Condition | None:
    if situation.failed > situation.spec.backoff_limit or _has_restarted_too_often(situation):
        return _failed("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = time_to_deadline(situation)
    if left is not None and left <= timedelta(0):
        return _failed("DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _has_restarted_too_often(situation: Situation) -> bool:
    """Containers that are restarted in their pod count as well, while the pod lives."""
    spec = situation.spec.template.get("spec") or {}
    if spec.get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        each.restart_count
        for pod in situation.pods
        if pod.status.phase in ("Running", "Pending")
        for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts >= max(situation.spec.backoff_limit, 1)


def _decided_by_indexes(situation: Situation) -> Condition | None:
    spec = situation.spec
    if not spec.is_indexed:
        return None
    failed = situation.failed_indexes
    if failed is not None and failed.ranges:
        if spec.max_failed_indexes is not None and len(failed) > spec.max_failed_indexes:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return _failed("MaxFailedIndexesExceeded", message)
        if len(failed) + len(situation.succeeded_indexes) >= spec.index_count:
            return _failed("FailedIndexes", "Job has failed indexes")
    rule = met_success_rule(spec, situation.succeeded_indexes)
    if rule is not None:
        return Condition(SUCCESS_CRITERIA_MET, "True", "SuccessPolicy", f"Matched rules at index {rule}")
    return None


def _bounded(seconds: int) -> timedelta:
    # The API takes any 64-bit number, a timedelta less.
    return timedelta(seconds=max(-(10**11), min(seconds, 10**11)))
