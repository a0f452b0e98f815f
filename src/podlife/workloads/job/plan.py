"""Which pods a Job makes or takes away now. Pure.

One pass either deletes or creates; deleting comes first. An index has one pod: pods without a valid index and all but
one of the same index go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from podlife.podcontrol import deletion_order
from podlife.workloads.job.backoff import wait_of_index
from podlife.workloads.job.pods import completion_index
from podlife.workloads.job.sync_context import Situation
from podlife.workloads.job.views import JobSpec
from podlife.workloads.views import Pod

__all__ = ["MOST_AT_ONCE", "Plan", "plan"]

MOST_AT_ONCE = 500
"""How many pods are created or deleted for a Job before the next one has its turn."""


@dataclass(frozen=True, slots=True)
class Plan:
    """At most one of these is to be done."""

    delete: tuple[Pod, ...] = ()
    create: int = 0
    # For which indexes, as many as are created; empty where the Job is not indexed.
    indexes: tuple[int, ...] = ()
    # How long a failure holds back what should be created.
    wait: timedelta | None = None


def plan(situation: Situation, *, most: int = MOST_AT_ONCE) -> Plan:
    if situation.spec.suspend:
        return Plan(delete=tuple(situation.active))
    wanted = _wanted(situation)
    surplus = _surplus(situation, max(0, len(situation.active) - wanted))
    if surplus:
        return Plan(delete=tuple(surplus[:most]))
    missing = wanted - len(situation.active)
    if situation.spec.replaces_only_failed:
        missing -= len(situation.going)
    return _creation(situation, min(missing, most)) if missing > 0 else Plan()


def _wanted(situation: Situation) -> int:
    """How many pods should be at work."""
    spec = situation.spec
    if spec.completions is None:
        # Once a worker has found the queue empty no other is begun, and those at work finish.
        return len(situation.active) if situation.succeeded > 0 else spec.parallelism
    return max(0, min(spec.completions - situation.succeeded, spec.parallelism))


def _creation(situation: Situation, missing: int) -> Plan:
    if situation.failed_indexes is not None:
        return _creation_per_index(situation, missing)
    wait = situation.backoff.wait(situation.now)
    if wait > timedelta(0):
        return Plan(wait=wait)
    if not situation.spec.is_indexed:
        return Plan(create=missing)
    indexes = situation.pending_indexes(missing)
    return Plan(create=len(indexes), indexes=tuple(indexes))


def _creation_per_index(situation: Situation, missing: int) -> Plan:
    """Each index waits for itself: those that may come now, or how long it is to the first."""
    waits = {
        index: wait_of_index(situation.held_back.get(index), situation.now)
        for index in situation.pending_indexes(missing)
    }
    due = tuple(index for index, wait in waits.items() if wait <= timedelta(0))
    if due or not waits:
        return Plan(create=len(due), indexes=due)
    return Plan(wait=min(waits.values()))


def _surplus(situation: Situation, at_least: int) -> list[Pod]:
    """The pods that are too many: those in front are missed least."""
    surplus: list[Pod] = []
    rest = situation.active
    if situation.spec.is_indexed:
        surplus, rest = _repeated(situation.active, situation.spec)
    if len(surplus) < at_least:
        surplus += deletion_order(rest)[: at_least - len(surplus)]
    return surplus


def _repeated(pods: Sequence[Pod], spec: JobSpec) -> tuple[list[Pod], list[Pod]]:
    """Those that no index needs, and the one for each index."""
    surplus: list[Pod] = []
    by_index: defaultdict[int, list[Pod]] = defaultdict(list)
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
