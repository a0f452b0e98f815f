"""The status of a Deployment, summed over its ReplicaSets. Pure."""

from __future__ import annotations

from datetime import datetime

from podlife.workloads.conditions import ConditionDict, Conditions, with_condition
from podlife.workloads.deployment.rollout import Rollout, total, wanted
from podlife.workloads.deployment.rollout_limits import max_unavailable
from podlife.workloads.views import Status

AVAILABLE = "Available"


def set_condition(conditions: Conditions, condition: ConditionDict, now: datetime) -> Conditions:
    return with_condition(conditions, condition.to_object(now, lastUpdateTime=now))


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
    if is_available:
        message = "Deployment has minimum availability."
        return ConditionDict(AVAILABLE, "True", "MinimumReplicasAvailable", message)
    message = "Deployment does not have minimum availability."
    return ConditionDict(AVAILABLE, "False", "MinimumReplicasUnavailable", message)


def _terminating(rollout: Rollout) -> int | None:
    """None when a ReplicaSet does not say: its controller is of before 1.33."""
    statuses = [each.status for each in rollout.replica_sets]
    silent = [each for each in statuses if each.get("terminatingReplicas") is None]
    if any(each.get("observedGeneration") for each in silent):
        return None
    return total(rollout.replica_sets, "terminatingReplicas")
