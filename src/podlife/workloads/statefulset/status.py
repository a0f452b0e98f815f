"""The status of a StatefulSet, counted from its pods. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from podlife.podcontrol import is_available, is_ready
from podlife.workloads.statefulset.identity import revision_of
from podlife.workloads.statefulset.views import StatefulSet
from podlife.workloads.views import Status, WorkloadPod


@dataclass(frozen=True, slots=True)
class RevisionNames:
    """Names of the revisions, and the number of name collisions."""

    current: str
    update: str
    collision_count: int


def known_revisions(stateful_set: StatefulSet) -> RevisionNames:
    """The revisions in the current status."""
    status = stateful_set.status
    return RevisionNames(
        status.get("currentRevision", ""), status.get("updateRevision", ""), status.get("collisionCount", 0)
    )


def new_status(
    stateful_set: StatefulSet,
    pods: Sequence[WorkloadPod],
    revisions: RevisionNames,
    now: datetime,
    *,
    updated: WorkloadPod | None = None,
) -> Status:
    """The new status; `updated` is the pod just deleted by the rolling update."""
    ready = [pod for pod in pods if pod.status.phase == "Running" and is_ready(pod)]
    min_ready = stateful_set.spec.min_ready_seconds
    staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    on_update = sum(1 for pod in staying if revision_of(pod) == revisions.update)
    counts = {
        "observedGeneration": stateful_set.metadata.generation,
        "readyReplicas": len(ready),
        "currentReplicas": sum(
            1 for pod in staying if pod is not updated and revision_of(pod) == revisions.current
        ),
        "updatedReplicas": on_update,
    }
    current = revisions.current
    if _is_complete(stateful_set, len(pods), counts):
        current, counts["currentReplicas"] = revisions.update, on_update
    status: Status = {
        **{name: value for name, value in stateful_set.status.items() if name not in counts},
        "replicas": len(pods),
        "availableReplicas": sum(1 for pod in ready if is_available(pod, min_ready, now)),
        "collisionCount": revisions.collision_count,
        **{name: count for name, count in counts.items() if count},
    }
    for name, revision in (("currentRevision", current), ("updateRevision", revisions.update)):
        status.pop(name, None)
        if revision:
            status[name] = revision
    return status


def _is_complete(stateful_set: StatefulSet, pods: int, counts: dict[str, int]) -> bool:
    """Whether an update has reached every pod; with a partition it never does."""
    wanted = stateful_set.spec.replicas
    return stateful_set.is_rolling and wanted == pods == counts["updatedReplicas"] == counts["readyReplicas"]
