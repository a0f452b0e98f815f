"""Progress conditions of a Deployment, and the progress deadline. Pure.

`kubectl rollout status` and `kubectl wait` read these: types, reasons and messages are upstream's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from podlife.api.codec import parse_time
from podlife.clock import add_seconds
from podlife.workloads.conditions import (
    ConditionDict,
    Conditions,
    find_condition,
    with_condition,
    without_condition,
)
from podlife.workloads.deployment.rollout import Rollout
from podlife.workloads.deployment.status import set_condition
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.replicaset.status import REPLICA_FAILURE
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.views import Status

PROGRESSING = "Progressing"
_NEW_AVAILABLE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"
_PAUSED = "DeploymentPaused"


def conditions_before(rollout: Rollout, now: datetime) -> Conditions:
    """The conditions to begin with: that it was paused or resumed, that its ReplicaSet was there already. The
    time in which it is paused is not held against it."""
    deployment, new = rollout.deployment, rollout.new
    known: Conditions = list(deployment.status.get("conditions") or ())
    if deployment.spec.deadline_seconds is None or deployment.metadata.deletion_timestamp is not None:
        return known
    reason = (find_condition(known, PROGRESSING) or {}).get("reason")
    if deployment.spec.paused and reason not in (_PAUSED, _TIMED_OUT):
        known = set_condition(
            known, ConditionDict(PROGRESSING, "Unknown", _PAUSED, "Deployment is paused"), now
        )
    elif not deployment.spec.paused and reason == _PAUSED:
        resumed = ConditionDict(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed")
        known = set_condition(known, resumed, now)
    if new is not None and find_condition(known, PROGRESSING) is None:
        message = f'Found new replica set "{new.metadata.name}"'
        known = set_condition(known, ConditionDict(PROGRESSING, "True", "FoundNewReplicaSet", message), now)
    return known


def created(deployment: Deployment, conditions: Conditions, name: str, now: datetime) -> Conditions:
    """After the new ReplicaSet was created."""
    if deployment.spec.deadline_seconds is None:
        return conditions
    message = f'Created new replica set "{name}"'
    return set_condition(conditions, ConditionDict(PROGRESSING, "True", "NewReplicaSetCreated", message), now)


def creation_failed(
    deployment: Deployment, conditions: Conditions, message: str, now: datetime
) -> Conditions:
    if deployment.spec.deadline_seconds is None:
        return conditions
    return set_condition(
        conditions, ConditionDict(PROGRESSING, "False", "ReplicaSetCreateError", message), now
    )


def is_complete(deployment: Deployment, status: Status) -> bool:
    """All that is wanted is of the new template and available, and nothing else is there."""
    replicas = deployment.spec.replicas
    counts = (status.get(name) or 0 for name in ("updatedReplicas", "replicas", "availableReplicas"))
    return (
        all(count == replicas for count in counts)
        and (status.get("observedGeneration") or 0) >= deployment.metadata.generation
    )


def with_progress(rollout: Rollout, before: Conditions, status: Status, now: datetime) -> Status:
    """The new status with what it says about the rollout, compared with the status the Deployment has. `before` are
    the conditions that the new status was made with."""
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
    """When to look whether it is late; None where it cannot become late."""
    seconds = deployment.spec.deadline_seconds
    current = find_condition(status.get("conditions"), PROGRESSING)
    if seconds is None or current is None or is_complete(deployment, status):
        return None
    if current.get("reason") in (_NEW_AVAILABLE, _TIMED_OUT) or not current.get("lastUpdateTime"):
        return None
    due = add_seconds(parse_time(current["lastUpdateTime"]), seconds)
    # A second more: the time it is counted from was cut to whole seconds.
    return max(0.0, (due - now).total_seconds()) + 1.0


def _was_complete(status: Status, current: dict[str, object] | None) -> bool:
    """Whether the last rollout is complete: later changes of pods are no progress."""
    is_over = current is not None and current.get("reason") == _NEW_AVAILABLE
    return is_over and status.get("replicas", 0) == status.get("updatedReplicas", 0)


def _progress(rollout: Rollout, conditions: Conditions, status: Status, now: datetime) -> Conditions:
    deployment, new = rollout.deployment, rollout.new
    what = f'Deployment "{deployment.metadata.name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    current = find_condition(conditions, PROGRESSING)
    if is_complete(deployment, status):
        done = ConditionDict(PROGRESSING, "True", _NEW_AVAILABLE, f"{what} has successfully progressed.")
        return set_condition(conditions, done, now)
    if _has_got_on(deployment.status, status):
        going = ConditionDict(PROGRESSING, "True", "ReplicaSetUpdated", f"{what} is progressing.")
        updated = going.to_object(now, lastUpdateTime=now)
        if current is not None and current.get("status") == "True":
            updated["lastTransitionTime"] = current.get("lastTransitionTime")
        # Even if unchanged: the progress deadline counts from the last update time.
        return [*without_condition(conditions, PROGRESSING), updated]
    if current is not None and _is_late(deployment, current, now):
        late = ConditionDict(PROGRESSING, "False", _TIMED_OUT, f"{what} has timed out progressing.")
        return set_condition(conditions, late, now)
    return conditions


def _has_got_on(old: Status, new: Status) -> bool:
    def count(status: Status, name: str) -> int:
        return status.get(name) or 0

    def of_old_templates(status: Status) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(count(new, name) > count(old, name) for name in grown) or (
        of_old_templates(new) < of_old_templates(old)
    )


def _is_late(deployment: Deployment, current: dict[str, object], now: datetime) -> bool:
    # After a rollout that was done, the time since then is not that of the one that begins.
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
