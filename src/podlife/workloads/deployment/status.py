"""The status of a Deployment: counts over its ReplicaSets, progress conditions and the progress deadline. Pure.

`kubectl rollout status` and `kubectl wait` read the conditions: types, reasons and messages are upstream's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from podlife.api.codec import parse_time
from podlife.clock import add_seconds
from podlife.workloads.deployment.rollout import Rollout, total, wanted
from podlife.workloads.deployment.views import Deployment, max_unavailable
from podlife.workloads.replicaset.status import REPLICA_FAILURE
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.status import (
    ConditionDict,
    Conditions,
    find_condition,
    with_condition,
    without_condition,
)
from podlife.workloads.views import Status

PROGRESSING = "Progressing"
_NEW_AVAILABLE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"
_PAUSED = "DeploymentPaused"


def set_condition(conditions: Conditions, condition: ConditionDict, now: datetime) -> Conditions:
    return with_condition(conditions, condition.to_object(now, lastUpdateTime=now))


def _progressing(conditions: Conditions, now: datetime, status: str, reason: str, message: str) -> Conditions:
    return set_condition(conditions, ConditionDict(PROGRESSING, status, reason, message), now)


def new_status(rollout: Rollout, conditions: Conditions, now: datetime) -> Status:
    """Counts and the Available condition; progress conditions are kept."""
    deployment, replica_sets = rollout.deployment, rollout.replica_sets
    available = total(replica_sets, "availableReplicas")
    updated = () if rollout.new is None else (rollout.new,)
    counts = {
        "observedGeneration": deployment.metadata.generation,
        "replicas": total(replica_sets, "replicas"),
        "updatedReplicas": total(updated, "replicas"),
        "readyReplicas": total(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted(replica_sets) - available),
    }
    status: Status = {
        name: value
        for name, value in deployment.status.items()
        if name not in counts and name != "terminatingReplicas"
    }
    status |= {name: count for name, count in counts.items() if count}
    if (terminating := _terminating(rollout)) is not None:
        status["terminatingReplicas"] = terminating
    least = deployment.spec.replicas - max_unavailable(deployment)
    return {**status, "conditions": set_condition(conditions, _availability(available >= least), now)}


def _availability(is_available: bool) -> ConditionDict:
    has = "has" if is_available else "does not have"
    reason = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
    return ConditionDict("Available", str(is_available), reason, f"Deployment {has} minimum availability.")


def _terminating(rollout: Rollout) -> int | None:
    """None if a ReplicaSet does not report it: its controller is older than 1.33."""
    statuses = [each.status for each in rollout.replica_sets]
    silent = [each for each in statuses if each.get("terminatingReplicas") is None]
    if any(each.get("observedGeneration") for each in silent):
        return None
    return total(rollout.replica_sets, "terminatingReplicas")


def conditions_before(rollout: Rollout, now: datetime) -> Conditions:
    """The conditions to start from: paused, resumed, or an existing ReplicaSet found. Time during which it is paused
    does not count against the deadline."""
    deployment, new = rollout.deployment, rollout.new
    known: Conditions = list(deployment.status.get("conditions") or ())
    if deployment.spec.deadline_seconds is None or deployment.is_deleting:
        return known
    reason = (find_condition(known, PROGRESSING) or {}).get("reason")
    if deployment.spec.paused and reason not in (_PAUSED, _TIMED_OUT):
        known = _progressing(known, now, "Unknown", _PAUSED, "Deployment is paused")
    elif not deployment.spec.paused and reason == _PAUSED:
        known = _progressing(known, now, "Unknown", "DeploymentResumed", "Deployment is resumed")
    if new is not None and find_condition(known, PROGRESSING) is None:
        message = f'Found new replica set "{new.metadata.name}"'
        known = _progressing(known, now, "True", "FoundNewReplicaSet", message)
    return known


def created(deployment: Deployment, conditions: Conditions, name: str, now: datetime) -> Conditions:
    if deployment.spec.deadline_seconds is None:
        return conditions
    message = f'Created new replica set "{name}"'
    return _progressing(conditions, now, "True", "NewReplicaSetCreated", message)


def creation_failed(
    deployment: Deployment, conditions: Conditions, message: str, now: datetime
) -> Conditions:
    if deployment.spec.deadline_seconds is None:
        return conditions
    return _progressing(conditions, now, "False", "ReplicaSetCreateError", message)


def is_complete(deployment: Deployment, status: Status) -> bool:
    """Whether all replicas are of the new template and available, and no others exist."""
    replicas = deployment.spec.replicas
    counts = (status.get(name) or 0 for name in ("updatedReplicas", "replicas", "availableReplicas"))
    return (
        all(count == replicas for count in counts)
        and (status.get("observedGeneration") or 0) >= deployment.metadata.generation
    )


def with_progress(rollout: Rollout, before: Conditions, status: Status, now: datetime) -> Status:
    """The new status with its progress conditions, compared with the Deployment's current status. `before` are the
    conditions that the new status was computed with."""
    deployment = rollout.deployment
    conditions: Conditions = status["conditions"]
    current = find_condition(before, PROGRESSING)
    if deployment.spec.deadline_seconds is None:
        conditions = without_condition(conditions, PROGRESSING)
    elif not _was_complete(status, current):
        conditions = _progress(rollout, conditions, status, now)
    failure = _failure_of(() if rollout.new is None else (rollout.new,)) or _failure_of(rollout.replica_sets)
    if failure is None:
        conditions = without_condition(conditions, REPLICA_FAILURE)
    else:
        failure = {**failure, "lastUpdateTime": failure.get("lastTransitionTime")}
        conditions = with_condition(conditions, failure)
    return {**status, "conditions": conditions}


def seconds_to_deadline(deployment: Deployment, status: Status, now: datetime) -> float | None:
    """When to check the progress deadline; None if it does not apply."""
    seconds = deployment.spec.deadline_seconds
    current = find_condition(status.get("conditions"), PROGRESSING)
    if seconds is None or current is None or is_complete(deployment, status):
        return None
    if current.get("reason") in (_NEW_AVAILABLE, _TIMED_OUT) or not current.get("lastUpdateTime"):
        return None
    due = add_seconds(parse_time(current["lastUpdateTime"]), seconds)
    # One second more, because the start was truncated to whole seconds.
    return max(0.0, (due - now).total_seconds()) + 1.0


def _was_complete(status: Status, current: dict[str, object] | None) -> bool:
    """Whether the last rollout is complete: later changes of pods are not progress."""
    is_over = current is not None and current.get("reason") == _NEW_AVAILABLE
    return is_over and status.get("replicas", 0) == status.get("updatedReplicas", 0)


def _progress(rollout: Rollout, conditions: Conditions, status: Status, now: datetime) -> Conditions:
    deployment, new = rollout.deployment, rollout.new
    what = f'Deployment "{deployment.metadata.name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    current = find_condition(conditions, PROGRESSING)
    if is_complete(deployment, status):
        return _progressing(conditions, now, "True", _NEW_AVAILABLE, f"{what} has successfully progressed.")
    if _has_progressed(deployment.status, status):
        going = ConditionDict(PROGRESSING, "True", "ReplicaSetUpdated", f"{what} is progressing.")
        updated = going.to_object(now, lastUpdateTime=now)
        if current is not None and current.get("status") == "True":
            updated["lastTransitionTime"] = current.get("lastTransitionTime")
        # Even if unchanged: the progress deadline counts from the last update time.
        return [*without_condition(conditions, PROGRESSING), updated]
    if current is not None and _is_late(deployment, current, now):
        return _progressing(conditions, now, "False", _TIMED_OUT, f"{what} has timed out progressing.")
    return conditions


def _has_progressed(old: Status, new: Status) -> bool:
    def count(status: Status, name: str) -> int:
        return status.get(name) or 0

    def of_old_templates(status: Status) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(count(new, name) > count(old, name) for name in grown) or (
        of_old_templates(new) < of_old_templates(old)
    )


def _is_late(deployment: Deployment, current: dict[str, object], now: datetime) -> bool:
    # The time since a completed rollout does not count for the next one.
    if current.get("reason") == _NEW_AVAILABLE:
        return False
    since = current.get("lastUpdateTime")
    seconds = deployment.spec.deadline_seconds
    if not isinstance(since, str) or seconds is None:
        return False
    return add_seconds(parse_time(since), seconds) < now


def _failure_of(replica_sets: Iterable[ReplicaSet]) -> dict[str, object] | None:
    for each in replica_sets:
        if (failure := find_condition(each.status.get("conditions"), REPLICA_FAILURE)) is not None:
            return failure
    return None
