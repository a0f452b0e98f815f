"""The status of a Job: counts, conditions, and uncounted terminated pods. Pure.

Three steps, each written before the next: `account` adds the UIDs of finished pods to the status; `settle` adds those
that have lost the tracking finalizer to the counts; `finish` sets Complete or Failed when none is left.
`sync_context` says why.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podlife.api.codec import format_time
from podlife.workloads.job.finished_condition import FAILURE_TARGET, final_condition
from podlife.workloads.job.pods import completion_index, has_failed, has_valid_index, is_tracked
from podlife.workloads.job.policies import rule_on_failure
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.status import ConditionDict, Conditions
from podlife.workloads.views import Status, WorkloadPod

_MOST_UNCOUNTED = 500
_COUNTED = ("succeeded", "failed")
SUSPENDED = ConditionDict("Suspended", "True", "JobSuspended", "Job suspended")
RESUMED = ConditionDict("Suspended", "False", "JobResumed", "Job resumed")
# Zero is not written for these; for `ready` and `terminating` it is.
_LEFT_OUT = ("active", "succeeded", "failed", "completedIndexes")


@dataclass(frozen=True, slots=True)
class Activity:
    active: int
    ready: int
    terminating: int


@dataclass(frozen=True, slots=True)
class Account:
    """After `status` was written, the finalizer of the pods in `release` may be removed."""

    status: Status
    release: list[WorkloadPod]
    # Whether it includes every finished pod: the number per status is bounded.
    is_whole: bool = True


def account(
    context: SyncContext, status: Status, activity: Activity, verdict: ConditionDict | None
) -> Account:
    """`status` is the current one; `verdict` the outcome of the Job, once only counting is left."""
    new: Status = {
        **status,
        "active": activity.active,
        "ready": activity.ready,
        "terminating": activity.terminating,
    }
    new = settle(new, held_uids(context))
    uncounted = new["uncountedTerminatedPods"]
    named = {how: list(uncounted.get(how, ())) for how in _COUNTED}
    release, is_whole = _collect(context, verdict, named)
    new["uncountedTerminatedPods"] = _written(named)
    if context.spec.is_indexed:
        new["completedIndexes"] = str(context.succeeded_indexes)
        new["succeeded"] = len(context.succeeded_indexes)
        new.pop("failedIndexes", None)
        if context.failed_indexes is not None:
            new["failedIndexes"] = str(context.failed_indexes)
    return Account(_without_zeros(new), release, is_whole)


def _collect(
    context: SyncContext, verdict: ConditionDict | None, named: dict[str, list[str]]
) -> tuple[list[WorkloadPod], bool]:
    """Pods whose finalizer can be removed, with their UIDs added to `named`; and whether these are all."""
    release: list[WorkloadPod] = []
    new_indexes = 0
    for pod in _in_order(context):
        if not is_tracked(pod) or not _may_be_released(context, pod, verdict):
            continue
        release.append(pod)
        counts_as = _counts_as(context, pod, verdict)
        if counts_as in named:
            named[counts_as].append(pod.metadata.uid)
        elif counts_as:
            new_indexes += 1
        if new_indexes + sum(map(len, named.values())) >= _MOST_UNCOUNTED:
            return release, False
    return release, True


def settle(status: Status, held: Collection[str]) -> Status:
    """Move pods without the finalizer to the counts; `held` are those that still have it."""
    new = dict(status)
    uncounted = status.get("uncountedTerminatedPods") or {}
    left = {}
    for how in _COUNTED:
        named = uncounted.get(how) or []
        left[how] = [uid for uid in named if uid in held]
        new[how] = (status.get(how) or 0) + len(named) - len(left[how])
    new["uncountedTerminatedPods"] = _written(left)
    return _without_zeros(new)


def finish(status: Status, verdict: ConditionDict, now: datetime) -> Status | None:
    """The final status of the Job; None while a pod is uncounted or terminating."""
    uncounted = status.get("uncountedTerminatedPods") or {}
    if uncounted.get("succeeded") or uncounted.get("failed") or status.get("terminating"):
        return None
    final = final_condition(verdict)
    new = {**status, "conditions": with_job_condition(status.get("conditions"), final, now)}
    if final.type == "Complete":
        new["completionTime"] = format_time(now)
    return new


def with_verdict(status: Status, verdict: ConditionDict, now: datetime) -> Status:
    return {**status, "conditions": with_job_condition(status.get("conditions"), verdict, now)}


def with_start(status: Status, *, is_suspended: bool, now: datetime) -> Status:
    """A Job starts with its first sync, unless it is suspended."""
    if is_suspended or status.get("startTime"):
        return status
    return {**status, "startTime": format_time(now)}


def with_suspension(status: Status, *, is_suspended: bool, now: datetime) -> Status:
    """With the Suspended condition. A suspended Job has no start time; a resumed one starts again."""
    known = status.get("conditions") or []
    conditions = with_job_condition(known, SUSPENDED if is_suspended else RESUMED, now)
    if conditions == known:
        return status
    new = {**status, "conditions": conditions, "startTime": format_time(now)}
    if is_suspended:
        del new["startTime"]
    return new


def with_job_condition(known: Conditions | None, condition: ConditionDict, now: datetime) -> Conditions:
    """Replace the condition of the same type, or append; an equal one is kept, and a new False one is not added."""
    conditions = list(known or ())
    written = condition.to_object(now, lastProbeTime=now)
    for place, old in enumerate(conditions):
        if old.get("type") == condition.type:
            if any(old.get(each, "") != written.get(each, "") for each in ("status", "reason", "message")):
                conditions[place] = written
            return conditions
    return [*conditions, written] if condition.status != "False" else conditions


def held_uids(context: SyncContext) -> set[str]:
    return {pod.metadata.uid for pod in context.pods if is_tracked(pod)}


def _in_order(context: SyncContext) -> list[WorkloadPod]:
    if not context.spec.is_indexed:
        return list(context.pods)
    return sorted(context.pods, key=_index_or_before_all)


def _index_or_before_all(pod: WorkloadPod) -> int:
    index = completion_index(pod)
    return -1 if index is None else index


def _may_be_released(context: SyncContext, pod: WorkloadPod, verdict: ConditionDict | None) -> bool:
    if context.job.is_deleting or verdict is not None or pod.status.phase == "Succeeded":
        return True
    if not has_failed(pod, context.spec):
        return False
    index = completion_index(pod)
    held = context.held_back.get(index) if index is not None else None
    return held is None or held.metadata.uid != pod.metadata.uid


def _counts_as(context: SyncContext, pod: WorkloadPod, verdict: ConditionDict | None) -> str:
    """ "index", "succeeded" or "failed"; empty if it does not count, or is already included."""
    spec, uid = context.spec, pod.metadata.uid
    if pod.status.phase == "Succeeded" and uid not in context.uncounted_failed:
        if not spec.is_indexed:
            return "" if uid in context.uncounted_succeeded else "succeeded"
        # The index suffices: no UID is recorded.
        index = completion_index(pod)
        is_known = index is None or index in context.known_succeeded_indexes
        return "" if is_known or not has_valid_index(pod, spec) else "index"
    # If the Job has failed, all of its unfinished pods have failed.
    is_failure = has_failed(pod, spec) or (verdict is not None and verdict.type == FAILURE_TARGET)
    if not is_failure or uid in context.uncounted_failed or not has_valid_index(pod, spec):
        return ""
    return "failed" if rule_on_failure(spec.pod_failure_policy, pod).is_counted else ""


def _written(named: dict[str, list[str]]) -> dict[str, Any]:
    return {how: uids for how, uids in named.items() if uids}


def _without_zeros(status: Status) -> Status:
    return {name: value for name, value in status.items() if value or name not in _LEFT_OUT}
