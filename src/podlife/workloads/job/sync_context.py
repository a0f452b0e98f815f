"""Snapshot of a Job and its pods, from which all decisions are made. Pure.

A pod is counted once. It carries the tracking finalizer until its UID is in `status.uncountedTerminatedPods`; then
the finalizer is removed; only after that is the UID moved to a count. A controller that stops at any point can
continue from what the server holds. For succeeded pods of an Indexed Job the index is sufficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property

from podlife.podcontrol import is_active, is_ready, is_terminating
from podlife.workloads.job.index_ranges import IndexRanges
from podlife.workloads.job.pods import (
    PodBackoff,
    all_failures_of_index,
    completion_index,
    failures_of_index,
    finished_at,
    has_failed,
    has_valid_index,
    is_tracked,
)
from podlife.workloads.job.policies import rule_on_failure
from podlife.workloads.job.views import Job
from podlife.workloads.views import WorkloadPod


class SyncContext:
    """`backoff` is the record of consecutive failures before these pods."""

    def __init__(self, job: Job, pods: Sequence[WorkloadPod], backoff: PodBackoff, now: datetime) -> None:
        self.job = job
        self.spec = job.spec
        self.pods = pods
        self.now = now
        self._backoff_before = backoff

    @cached_property
    def active(self) -> list[WorkloadPod]:
        return [pod for pod in self.pods if is_active(pod)]

    @cached_property
    def going(self) -> list[WorkloadPod]:
        return [pod for pod in self.pods if is_terminating(pod)]

    @cached_property
    def ready(self) -> int:
        return sum(1 for pod in self.active if is_ready(pod))

    # Finished pods

    @cached_property
    def uncounted_succeeded(self) -> frozenset[str]:
        return self._uncounted("succeeded")

    @cached_property
    def uncounted_failed(self) -> frozenset[str]:
        return self._uncounted("failed")

    @cached_property
    def new_succeeded(self) -> list[WorkloadPod]:
        """Succeeded pods that are not in the status yet."""
        return [
            pod
            for pod in self.pods
            if pod.status.phase == "Succeeded" and self._is_new(pod, self.uncounted_succeeded)
        ]

    @cached_property
    def new_failed(self) -> list[WorkloadPod]:
        return [
            pod
            for pod in self.pods
            if self._is_new(pod, self.uncounted_failed) and has_failed(pod, self.spec)
        ]

    @cached_property
    def succeeded(self) -> int:
        """Total number of succeeded pods or, for an indexed Job, indexes."""
        if self.spec.is_indexed:
            return len(self.succeeded_indexes)
        known: int = self.job.status.get("succeeded") or 0
        return known + len(self.uncounted_succeeded) + len(self.new_succeeded)

    @cached_property
    def failed(self) -> int:
        """Total number of failures that count."""
        policy = self.spec.pod_failure_policy
        counted = sum(1 for pod in self.new_failed if rule_on_failure(policy, pod).is_counted)
        known: int = self.job.status.get("failed") or 0
        return known + len(self.uncounted_failed) + counted

    @cached_property
    def backoff(self) -> PodBackoff:
        return self._backoff_before.after(self.new_succeeded, self.new_failed)

    # Indexes

    @cached_property
    def known_succeeded_indexes(self) -> IndexRanges:
        """Succeeded indexes in the status."""
        return IndexRanges.parse(self.job.status.get("completedIndexes") or "", self.spec.index_count)

    @cached_property
    def succeeded_indexes(self) -> IndexRanges:
        succeeded = (pod for pod in self.pods if pod.status.phase == "Succeeded" and self._is_of_index(pod))
        return self.known_succeeded_indexes | IndexRanges.of(indexes_of(succeeded))

    @cached_property
    def failed_indexes(self) -> IndexRanges | None:
        """None unless the Job has a backoff limit per index."""
        if not self._counts_per_index:
            return None
        known = IndexRanges.parse(self.job.status.get("failedIndexes") or "", self.spec.index_count)
        failed = (pod for pod in self.pods if self._is_of_index(pod) and self._ends_its_index(pod))
        return known | IndexRanges.of(indexes_of(failed))

    @cached_property
    def held_back(self) -> dict[int, WorkloadPod]:
        """By index, the failed pod to replace, which carries the failure count of its index."""
        if self.failed_indexes is None:
            return {}
        settled = self.succeeded_indexes | self.failed_indexes | IndexRanges.of(indexes_of(self.active))
        latest: dict[int, WorkloadPod] = {}
        for pod in self.pods:
            index = completion_index(pod)
            if (
                index is None
                or not self._is_of_index(pod)
                or not has_failed(pod, self.spec)
                or index in settled
            ):
                continue
            if index not in latest or _is_as_late(pod, latest[index]):
                latest[index] = pod
        return latest

    def pending_indexes(self, count: int) -> list[int]:
        """The first indexes without a pod that are not finished."""
        taken = self.succeeded_indexes | IndexRanges.of(indexes_of(self.active))
        if self.spec.replaces_only_failed:
            taken |= IndexRanges.of(indexes_of(self.going))
        if self.failed_indexes is not None:
            taken |= self.failed_indexes
        missing = taken.missing_below(self.spec.index_count)
        return [index for index, _ in zip(missing, range(count), strict=False)]

    @property
    def _counts_per_index(self) -> bool:
        return self.spec.is_indexed and self.spec.backoff_limit_per_index is not None

    def _uncounted(self, how: str) -> frozenset[str]:
        return frozenset((self.job.status.get("uncountedTerminatedPods") or {}).get(how) or ())

    def _is_new(self, pod: WorkloadPod, uncounted: frozenset[str]) -> bool:
        return is_tracked(pod) and pod.metadata.uid not in uncounted and has_valid_index(pod, self.spec)

    def _is_of_index(self, pod: WorkloadPod) -> bool:
        return is_tracked(pod) and has_valid_index(pod, self.spec)

    def _ends_its_index(self, pod: WorkloadPod) -> bool:
        if not has_failed(pod, self.spec):
            return False
        ruling = rule_on_failure(self.spec.pod_failure_policy, pod)
        if ruling.action == "FailIndex":
            return True
        return ruling.is_counted and failures_of_index(pod) >= (self.spec.backoff_limit_per_index or 0)


def indexes_of(pods: Iterable[WorkloadPod]) -> set[int]:
    return {index for pod in pods if (index := completion_index(pod)) is not None}


def _is_as_late(pod: WorkloadPod, other: WorkloadPod) -> bool:
    return all_failures_of_index(other) <= all_failures_of_index(pod) and finished_at(pod) >= finished_at(
        other
    )
