"""Predicates and fields of a Job's pods (tracked, failed, index, finish time), and the backoff before a failed one is
replaced: 10 s, doubled after each consecutive failure, at most 10 minutes. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podlife.clock import add_seconds
from podlife.workloads.job.views import JobSpec
from podlife.workloads.views import WorkloadContainerStatus, WorkloadPod

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
"""On a pod until it has been counted, so that a restarted controller knows what was counted."""
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label."""
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"

_NUMBER = re.compile(r"\+?[0-9]{1,19}")
_MOST = 2**31 - 1
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_FIRST = timedelta(seconds=10)
_MOST_WAIT = timedelta(minutes=10)
# Enough doublings of 10 s to exceed the maximum.
_MOST_DOUBLINGS = 6
_NONE = timedelta(0)


def is_tracked(pod: WorkloadPod) -> bool:
    return TRACKING_FINALIZER in pod.metadata.finalizers


def has_failed(pod: WorkloadPod, spec: JobSpec) -> bool:
    """Whether it counts as failed. A terminating pod does, unless only failed ones are replaced: it may be orphaned."""
    if pod.status.phase in ("Failed", "Succeeded"):
        return pod.status.phase == "Failed"
    return pod.metadata.deletion_timestamp is not None and not spec.replaces_only_failed


def completion_index(pod: WorkloadPod) -> int | None:
    text = pod.metadata.annotations.get(COMPLETION_INDEX, "")
    return int(text) if _NUMBER.fullmatch(text) else None


def has_valid_index(pod: WorkloadPod, spec: JobSpec) -> bool:
    """Always true if the Job is not indexed."""
    if not spec.is_indexed:
        return True
    index = completion_index(pod)
    return index is not None and index < spec.index_count


def failures_of_index(pod: WorkloadPod) -> int:
    """Failures of its index before it was created."""
    return _count(pod, INDEX_FAILURES)


def ignored_failures_of_index(pod: WorkloadPod) -> int:
    return _count(pod, INDEX_IGNORED_FAILURES)


def all_failures_of_index(pod: WorkloadPod) -> int:
    return failures_of_index(pod) + ignored_failures_of_index(pod)


def finished_at(pod: WorkloadPod) -> datetime:
    """When the pod finished: by its containers; else when it stopped being ready; else when its deletion was requested;
    else, without a kubelet, when it was created."""
    ended = _containers_ended_at(pod)
    if ended is not None:
        return ended
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status == "False" and condition.last_transition_time:
            return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return add_seconds(metadata.deletion_timestamp, -(metadata.deletion_grace_period_seconds or 0))
    return metadata.creation_timestamp or _BEGINNING


def _containers_ended_at(pod: WorkloadPod) -> datetime | None:
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    regular = _last_end(pod.status.container_statuses)
    # Sidecars end after the regular containers do.
    beside = [each for each in pod.status.init_container_statuses if each.name in sidecars]
    if not beside:
        return regular
    last = _last_end(beside)
    return None if last is None else max(last, regular or last)


def _last_end(statuses: Iterable[WorkloadContainerStatus]) -> datetime | None:
    """None if one has not ended, or has no end time."""
    ends = [
        each.state.terminated.finished_at if each.state and each.state.terminated else None
        for each in statuses
    ]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _count(pod: WorkloadPod, annotation: str) -> int:
    """0 for an invalid count: any client can write annotations."""
    text = pod.metadata.annotations.get(annotation, "")
    count = int(text) if _NUMBER.fullmatch(text) else 0
    return count if count <= _MOST else 0


@dataclass(frozen=True, slots=True)
class PodBackoff:
    """Consecutive failures of a Job since its last success."""

    failures: int = 0
    last_failure: datetime | None = None

    def after(self, succeeded: Sequence[WorkloadPod], failed: Sequence[WorkloadPod]) -> PodBackoff:
        """The backoff after these pods finished."""
        ends = sorted(finished_at(pod) for pod in failed)
        if not succeeded:
            return PodBackoff(self.failures + len(ends), ends[-1]) if ends else self
        last_success = max(finished_at(pod) for pod in succeeded)
        since = [end for end in ends if end > last_success]
        return PodBackoff(len(since), since[-1] if since else None)

    def wait(self, now: datetime) -> timedelta:
        return _wait(self.failures, self.last_failure, now)


def wait_of_index(replaced: WorkloadPod | None, now: datetime) -> timedelta:
    """The backoff of an index whose last failed pod is `replaced`."""
    if replaced is None:
        return _NONE
    return _wait(all_failures_of_index(replaced) + 1, finished_at(replaced), now)


def _wait(failures: int, last_failure: datetime | None, now: datetime) -> timedelta:
    if failures == 0 or last_failure is None:
        return _NONE
    factor: int = 2 ** min(failures - 1, _MOST_DOUBLINGS)
    whole = min(_FIRST * factor, _MOST_WAIT)
    return max(_NONE, whole - (now - last_failure))
