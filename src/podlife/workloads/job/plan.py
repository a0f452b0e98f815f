"""Which pods a Job creates or deletes now. Pure.

A sync either deletes or creates, and deletes first. An index has one pod: pods without a valid index and duplicates
of an index are deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from podlife.podcontrol import deletion_order
from podlife.workloads.job.pods import completion_index, wait_of_index
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.job.views import JobSpec
from podlife.workloads.views import WorkloadPod

MOST_AT_ONCE = 500
"""Maximum number of pods created or deleted per sync of a Job."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """At most one of delete, create and wait is set."""

    delete: tuple[WorkloadPod, ...] = ()
    create: int = 0
    # One index for each pod to create; empty for a Job that is not indexed.
    indexes: tuple[int, ...] = ()
    # Backoff before the next creation.
    wait: timedelta | None = None


def plan(context: SyncContext, *, most: int = MOST_AT_ONCE) -> JobPlan:
    if context.spec.suspend:
        return JobPlan(delete=tuple(context.active))
    wanted = _wanted(context)
    surplus = _surplus(context, max(0, len(context.active) - wanted))
    if surplus:
        return JobPlan(delete=tuple(surplus[:most]))
    missing = wanted - len(context.active)
    if context.spec.replaces_only_failed:
        missing -= len(context.going)
    return _creation(context, min(missing, most)) if missing > 0 else JobPlan()


def _wanted(context: SyncContext) -> int:
    spec = context.spec
    if spec.completions is None:
        # Work queue: after the first success no pod is started, and the active ones finish.
        return len(context.active) if context.succeeded > 0 else spec.parallelism
    return max(0, min(spec.completions - context.succeeded, spec.parallelism))


def _creation(context: SyncContext, missing: int) -> JobPlan:
    if context.failed_indexes is not None:
        return _creation_per_index(context, missing)
    wait = context.backoff.wait(context.now)
    if wait > timedelta(0):
        return JobPlan(wait=wait)
    if not context.spec.is_indexed:
        return JobPlan(create=missing)
    indexes = context.pending_indexes(missing)
    return JobPlan(create=len(indexes), indexes=tuple(indexes))


def _creation_per_index(context: SyncContext, missing: int) -> JobPlan:
    """Each index has its own backoff: the indexes that may start now, or the wait for the first."""
    waits = {
        index: wait_of_index(context.held_back.get(index), context.now)
        for index in context.pending_indexes(missing)
    }
    due = tuple(index for index, wait in waits.items() if wait <= timedelta(0))
    if due or not waits:
        return JobPlan(create=len(due), indexes=due)
    return JobPlan(wait=min(waits.values()))


def _surplus(context: SyncContext, at_least: int) -> list[WorkloadPod]:
    """Surplus pods, in deletion order."""
    surplus: list[WorkloadPod] = []
    rest = context.active
    if context.spec.is_indexed:
        surplus, rest = _repeated(context.active, context.spec)
    if len(surplus) < at_least:
        surplus += deletion_order(rest)[: at_least - len(surplus)]
    return surplus


def _repeated(pods: Sequence[WorkloadPod], spec: JobSpec) -> tuple[list[WorkloadPod], list[WorkloadPod]]:
    """Pods that no index needs, and the one for each index."""
    surplus: list[WorkloadPod] = []
    by_index: defaultdict[int, list[WorkloadPod]] = defaultdict(list)
    for pod in pods:
        index = completion_index(pod)
        if index is None or index >= spec.index_count:
            surplus.append(pod)
        else:
            by_index[index].append(pod)
    kept = []
    for same in by_index.values():
        *others, last = deletion_order(same)
        surplus += others
        kept.append(last)
    return surplus, kept
