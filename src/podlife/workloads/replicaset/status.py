"""The pods of a ReplicaSet, sorted and counted, and the status they result in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from podlife.api.selectors import LabelSelector
from podlife.podcontrol import is_active, is_available, is_ready, is_terminal, is_terminating, ready_since
from podlife.workloads.replicaset.views import ReplicaSet, ReplicationController, template_labels
from podlife.workloads.status import ConditionDict, find_condition, with_condition, without_condition
from podlife.workloads.views import Status, WorkloadPod

REPLICA_FAILURE = "ReplicaFailure"


def new_status(
    replica_set: ReplicaSet,
    active: Sequence[WorkloadPod],
    terminating: Sequence[WorkloadPod],
    failure: Exception | None,
    now: datetime,
) -> Status:
    """The new status; `failure` is the error of the last creations or deletions."""
    spec = replica_set.spec
    ready = [pod for pod in active if is_ready(pod)]
    counts = {
        "fullyLabeledReplicas": count_labelled(active, template_labels(replica_set)),
        "readyReplicas": len(ready),
        "availableReplicas": sum(1 for pod in ready if is_available(pod, spec.min_ready_seconds, now)),
        "observedGeneration": replica_set.metadata.generation,
    }
    status: Status = {**replica_set.status, "replicas": len(active)}
    if not isinstance(replica_set, ReplicationController):
        status["terminatingReplicas"] = len(terminating)
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


@dataclass(frozen=True, slots=True)
class Sorted:
    active: list[WorkloadPod]
    terminating: list[WorkloadPod]
    # To be adopted or released.
    claimable: list[WorkloadPod]


def sort_pods(
    owned: Iterable[WorkloadPod],
    orphans: Iterable[WorkloadPod],
    selector: LabelSelector,
    labels: Mapping[str, str],
) -> Sorted:
    """`owned` are pods with this controller, `orphans` pods of its namespace without one. `labels` are the template's:
    a fast path for pods with exactly these."""
    is_usual = selector.matches(labels)
    active: list[WorkloadPod] = []
    terminating: list[WorkloadPod] = []
    claimable: list[WorkloadPod] = []
    for pod in owned:
        carried = pod.metadata.labels
        is_match = (is_usual and carried == labels) or selector.matches(carried)
        if is_active(pod):
            (active if is_match else claimable).append(pod)
        elif is_match and is_terminating(pod):
            terminating.append(pod)
    claimable += [pod for pod in orphans if selector.matches(pod.metadata.labels) and is_active(pod)]
    return Sorted(active, terminating, claimable)


def count_labelled(pods: Collection[WorkloadPod], labels: Mapping[str, str]) -> int:
    """Number of pods that have at least the template's labels."""
    wanted = labels.items()
    return sum(1 for pod in pods if pod.metadata.labels == labels or wanted <= pod.metadata.labels.items())


def affects_status(old: WorkloadPod, new: WorkloadPod) -> bool:
    """Whether a field that affects the status has changed: finished, ready, or the time since it is ready."""
    return (
        is_terminal(old) != is_terminal(new)
        or is_ready(old) != is_ready(new)
        or ready_since(old) != ready_since(new)
    )
