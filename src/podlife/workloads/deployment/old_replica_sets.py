"""Which old ReplicaSets of a Deployment are deleted (revisionHistoryLimit). Pure."""

from __future__ import annotations

import functools

from podlife.workloads.deployment.annotations import revision_of
from podlife.workloads.deployment.rollout import Rollout, age
from podlife.workloads.replicaset.views import ReplicaSet


def removable(rollout: Rollout) -> tuple[ReplicaSet, ...]:
    """The oldest revisions past the limit. One that has pods, or may still get some, counts but stays."""
    limit = rollout.deployment.spec.history_limit
    if limit is None:
        return ()
    known = [each for each in rollout.old if each.metadata.deletion_timestamp is None]
    known.sort(key=functools.cmp_to_key(_compare))
    return tuple(each for each in known[: max(0, len(known) - limit)] if _is_idle(each))


def _is_idle(replica_set: ReplicaSet) -> bool:
    status = replica_set.status
    if replica_set.metadata.generation > (status.get("observedGeneration") or 0):
        return False
    return not replica_set.spec.replicas and not status.get("replicas")


def _compare(one: ReplicaSet, other: ReplicaSet) -> int:
    revisions = revision_of(one), revision_of(other)
    if None in revisions or revisions[0] == revisions[1]:
        # A revision that cannot be read says nothing.
        return -1 if age(one) < age(other) else 1
    return -1 if revisions < revisions[::-1] else 1
