"""The status of a ReplicaSet, counted from its pods. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from podlife.podcontrol import is_available, is_ready
from podlife.workloads.conditions import ConditionDict, find_condition, with_condition, without_condition
from podlife.workloads.replicaset.pods import count_labelled
from podlife.workloads.replicaset.views import ReplicaSet, template_labels
from podlife.workloads.views import Status, WorkloadPod

REPLICA_FAILURE = "ReplicaFailure"


def new_status(
    replica_set: ReplicaSet,
    active: Sequence[WorkloadPod],
    terminating: Sequence[WorkloadPod],
    failure: Exception | None,
    now: datetime,
) -> Status:
    """What the status should be; `failure` is what went wrong as pods were created or deleted just now."""
    spec = replica_set.spec
    ready = [pod for pod in active if is_ready(pod)]
    counts = {
        "fullyLabeledReplicas": count_labelled(active, template_labels(replica_set)),
        "readyReplicas": len(ready),
        "availableReplicas": sum(1 for pod in ready if is_available(pod, spec.min_ready_seconds, now)),
        "observedGeneration": replica_set.metadata.generation,
    }
    status: Status = {
        **replica_set.status,
        "replicas": len(active),
        "terminatingReplicas": len(terminating),
    }
    for name, count in counts.items():
        status.pop(name, None)
        if count:
            status[name] = count
    conditions = _conditions(replica_set, len(active), failure, now)
    status.pop("conditions", None)
    return {**status, "conditions": conditions} if conditions else status


def _conditions(
    replica_set: ReplicaSet, active: int, failure: Exception | None, now: datetime
) -> list[dict[str, object]]:
    known = replica_set.status.get("conditions") or []
    if failure is None:
        return without_condition(known, REPLICA_FAILURE)
    if find_condition(known, REPLICA_FAILURE) is not None:
        return list(known)
    wanted = replica_set.spec.replicas
    reason = "FailedCreate" if active < wanted else "FailedDelete" if active > wanted else ""
    condition = ConditionDict(REPLICA_FAILURE, "True", reason, str(failure))
    return with_condition(known, condition.to_object(now))
