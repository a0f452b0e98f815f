"""Whether a Job has succeeded or failed, with reason and message. Pure.

The interim condition, SuccessCriteriaMet or FailureTarget, is written before anything is done about it and is final;
Complete or Failed follows when the last pod is gone and counted.
"""

from __future__ import annotations

from datetime import timedelta

from podlife.workloads.job.pods import has_failed
from podlife.workloads.job.policies import met_success_rule, rule_on_failure
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.job.views import start_time
from podlife.workloads.status import ConditionDict, find_condition
from podlife.workloads.views import Status

SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
FAILURE_TARGET = "FailureTarget"
COMPLETED = ConditionDict(
    SUCCESS_CRITERIA_MET, "True", "CompletionsReached", "Reached expected number of succeeded pods"
)
_FINAL = {SUCCESS_CRITERIA_MET: "Complete", FAILURE_TARGET: "Failed"}


def judge(context: SyncContext) -> ConditionDict | None:
    """The interim condition, already written or due now; `has_completed` checks the number of completions."""
    return (
        written_verdict(context.job.status)
        or _failed_by_policy(context)
        or _failed_by_limits(context)
        or _decided_by_indexes(context)
    )


def has_completed(context: SyncContext, active: int) -> bool:
    """Whether nothing is left to do, given the number of active pods."""
    if active:
        return False
    completions = context.spec.completions
    return context.succeeded > 0 if completions is None else context.succeeded >= completions


def final_condition(verdict: ConditionDict) -> ConditionDict:
    return ConditionDict(_FINAL[verdict.type], "True", verdict.reason, verdict.message)


def time_to_deadline(context: SyncContext) -> timedelta | None:
    """Seconds until activeDeadlineSeconds; None if there is none."""
    seconds = context.spec.active_deadline_seconds
    if seconds is None or context.spec.suspend:
        return None
    started = start_time(context.job.status) or context.now
    return _bounded(seconds) - (context.now - started)


def written_verdict(status: Status) -> ConditionDict | None:
    for type_ in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        found = find_condition(status.get("conditions"), type_)
        if found is not None and found.get("status") == "True":
            return ConditionDict(type_, "True", found.get("reason", ""), found.get("message", ""))
    return None


def _failed(reason: str, message: str) -> ConditionDict:
    return ConditionDict(FAILURE_TARGET, "True", reason, message)


def _failed_by_policy(context: SyncContext) -> ConditionDict | None:
    policy = context.spec.pod_failure_policy
    if policy is None:
        return None
    for pod in context.pods:
        if has_failed(pod, context.spec) and (message := rule_on_failure(policy, pod).message):
            return _failed("PodFailurePolicy", message)
    return None


def _failed_by_limits(context: SyncContext) -> ConditionDict | None:
    if context.failed > context.spec.backoff_limit or _has_restarted_too_often(context):
        return _failed("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = time_to_deadline(context)
    if left is not None and left <= timedelta(0):
        return _failed("DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _has_restarted_too_often(context: SyncContext) -> bool:
    """Container restarts count too, while the pod exists."""
    spec = context.spec.template.get("spec") or {}
    if spec.get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(
        each.restart_count
        for pod in context.pods
        if pod.status.phase in ("Running", "Pending")
        for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts >= max(context.spec.backoff_limit, 1)


def _decided_by_indexes(context: SyncContext) -> ConditionDict | None:
    spec = context.spec
    if not spec.is_indexed:
        return None
    failed = context.failed_indexes
    if failed is not None and failed.ranges:
        if spec.max_failed_indexes is not None and len(failed) > spec.max_failed_indexes:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return _failed("MaxFailedIndexesExceeded", message)
        if len(failed) + len(context.succeeded_indexes) >= spec.index_count:
            return _failed("FailedIndexes", "Job has failed indexes")
    rule = met_success_rule(spec, context.succeeded_indexes)
    if rule is not None:
        return ConditionDict(SUCCESS_CRITERIA_MET, "True", "SuccessPolicy", f"Matched rules at index {rule}")
    return None


def _bounded(seconds: int) -> timedelta:
    # The API allows any 64-bit number, a timedelta does not.
    return timedelta(seconds=max(-(10**11), min(seconds, 10**11)))
