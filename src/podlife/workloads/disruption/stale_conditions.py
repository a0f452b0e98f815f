"""Pods that were marked as disrupted and then not deleted. Pure.

A component that deletes a pod first sets its DisruptionTarget condition. If the deletion does not follow within two
minutes, the condition is set to False: a Job must not treat the next failure of that pod as a disruption. Conditions
set by the kubelet are left alone, because it may take any time until that pod is deleted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from podlife.api.codec import Object, format_time, parse_time
from podlife.podcontrol import is_terminal
from podlife.workloads.status import find_condition
from podlife.workloads.views import WorkloadPod

STALE_AFTER = timedelta(minutes=2)
_DISRUPTION_TARGET = "DisruptionTarget"
_BY_KUBELET = "TerminationByKubelet"


def time_until_stale(pod: WorkloadPod, now: datetime) -> timedelta | None:
    """Zero or less if it is stale; None for a pod without the condition, or one that is terminating or finished."""
    if pod.metadata.deletion_timestamp is not None or is_terminal(pod):
        return None
    for condition in pod.status.conditions:
        if condition.type == _DISRUPTION_TARGET and condition.status == "True":
            # A condition without a time counts as stale.
            since = condition.last_transition_time
            return timedelta(0) if since is None else since + STALE_AFTER - now
    return None


def reset_patch(pod: Object, now: datetime) -> Object | None:
    """The patch that resets the condition; None if it is not stale."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    condition = find_condition(status.get("conditions"), _DISRUPTION_TARGET)
    if (
        condition is None
        or condition.get("status") != "True"
        or condition.get("reason") == _BY_KUBELET
        or metadata.get("deletionTimestamp")
        or status.get("phase") in ("Succeeded", "Failed")
        or not _is_over(condition.get("lastTransitionTime"), now)
    ):
        return None
    reset = {"type": _DISRUPTION_TARGET, "status": "False", "lastTransitionTime": format_time(now)}
    if generation := metadata.get("generation"):
        reset["observedGeneration"] = generation
    # A merge patch replaces the whole list, in its order.
    conditions = [reset if each is condition else each for each in status["conditions"]]
    about = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    return {"metadata": about, "status": {"conditions": conditions}}


def _is_over(since: str | None, now: datetime) -> bool:
    try:
        return since is None or parse_time(since) + STALE_AFTER <= now
    except (ValueError, OverflowError):
        return True
