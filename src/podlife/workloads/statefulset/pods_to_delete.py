"""Which pod a StatefulSet deletes next, when it is scaled down and when it is updated. Pure.

Condemned pods (upstream's word: their ordinal is no longer wanted) go first, the highest ordinal first. Then, with the
RollingUpdate strategy, the highest ordinal that is not of the update revision. An ordered set deletes one pod at a time
and waits until it is gone and all others are available.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from podlife.podcontrol import is_available, is_terminal
from podlife.workloads.statefulset.identity import revision_of
from podlife.workloads.statefulset.views import StatefulSet
from podlife.workloads.views import WorkloadPod


def condemned_to_delete(
    stateful_set: StatefulSet,
    condemned: Sequence[WorkloadPod],
    replicas: Iterable[WorkloadPod | None],
    now: datetime,
) -> tuple[Sequence[WorkloadPod], bool]:
    """The condemned pods to delete now, and whether an update has to wait. `condemned` has the highest ordinal first;
    `replicas` are the wanted pods."""
    if not stateful_set.is_ordered:
        return [pod for pod in condemned if not _is_terminating(pod)], False
    if not condemned:
        return (), False
    last = condemned[0]
    if _is_terminating(last):
        return (), True
    # An unhealthy pod is deleted only if no pod before it is unhealthy. A finished pod never recovers: it is deleted
    # anyway, while upstream waits forever.
    pods = [*(pod for pod in replicas if pod is not None), *reversed(condemned)]
    first_unavailable = next((pod for pod in pods if is_unavailable(stateful_set, pod, now)), None)
    may_go = is_terminal(last) or last is first_unavailable or not is_awaited(stateful_set, last, now)
    return ([last] if may_go else []), True


def pod_to_update(
    stateful_set: StatefulSet, replicas: Sequence[WorkloadPod | None], update_revision: str, now: datetime
) -> WorkloadPod | None:
    """The pod with the highest ordinal that is not of the update revision, if all pods after it are available."""
    if not stateful_set.is_rolling:
        return None
    for pod in reversed(replicas[stateful_set.partition :]):
        if pod is None or is_terminal(pod):
            # A finished pod is deleted whatever its revision.
            return None
        if revision_of(pod) != update_revision and not _is_terminating(pod):
            return pod
        if is_unavailable(stateful_set, pod, now):
            return None
    return None


def is_awaited(stateful_set: StatefulSet, pod: WorkloadPod | None, now: datetime) -> bool:
    """Whether an ordered set waits for it: it is missing, not running, terminating or not available."""
    if pod is None or pod.status.phase != "Running":
        return True
    return is_unavailable(stateful_set, pod, now)


def is_unavailable(stateful_set: StatefulSet, pod: WorkloadPod, now: datetime) -> bool:
    return _is_terminating(pod) or not is_available(pod, stateful_set.spec.min_ready_seconds, now)


def _is_terminating(pod: WorkloadPod) -> bool:
    return pod.metadata.deletion_timestamp is not None
