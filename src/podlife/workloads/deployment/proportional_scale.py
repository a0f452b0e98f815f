"""Scales the ReplicaSets of a Deployment that was scaled or paused, in proportion to their sizes. Pure.

Scaling only the new ReplicaSet up, or only the old ones down, would speed up a rollout in progress, and with it
whatever is wrong with the new template.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.workloads.deployment.annotations import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    read_count,
    size_annotations,
)
from podlife.workloads.deployment.rollout import Rollout, Scale, active, age, wanted
from podlife.workloads.deployment.views import ROLLING_UPDATE, Deployment, max_surge
from podlife.workloads.replicaset.views import ReplicaSet


def is_being_scaled(rollout: Rollout) -> bool:
    """Whether a ReplicaSet was scaled for another size of the Deployment."""
    replicas = rollout.deployment.spec.replicas
    counts = (read_count(each, DESIRED_REPLICAS) for each in active(rollout.replica_sets))
    return any(count is not None and count != replicas for count in counts)


def scale(rollout: Rollout) -> tuple[Scale, ...]:
    deployment = rollout.deployment
    if not rollout.replica_sets:
        return ()
    if (only := _only_active_or_latest(rollout)) is not None:
        replicas = deployment.spec.replicas
        # Correct a wrong annotation even at the right size: otherwise it looks like scaling forever.
        is_right = only.spec.replicas == replicas and read_count(only, DESIRED_REPLICAS) in (None, replicas)
        return () if is_right else (Scale(only, replicas),)
    if _is_saturated(deployment, rollout.new):
        return tuple(Scale(each, 0) for each in active(rollout.old))
    if deployment.spec.strategy.type != ROLLING_UPDATE:
        return ()
    # Later proportions are computed from these annotations, so all are written.
    marks = size_annotations(deployment).items()
    return tuple(
        Scale(each, size)
        for each, size in _in_proportion(deployment, active(rollout.replica_sets))
        if each.spec.replicas != size or not marks <= each.metadata.annotations.items()
    )


def _only_active_or_latest(rollout: Rollout) -> ReplicaSet | None:
    known = active(rollout.replica_sets)
    if not known:
        return rollout.new or rollout.old[-1]
    return known[0] if len(known) == 1 else None


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """Whether the new ReplicaSet alone has all replicas, available."""
    replicas = deployment.spec.replicas
    return new is not None and (
        new.spec.replicas == read_count(new, DESIRED_REPLICAS) == new.status.get("availableReplicas", 0)
        and new.spec.replicas == replicas
    )


def _in_proportion(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet]
) -> list[tuple[ReplicaSet, int]]:
    allowed = deployment.spec.replicas + max_surge(deployment) if deployment.spec.replicas else 0
    to_add = allowed - wanted(replica_sets)
    # Largest first; of equal size the newest grows first, and the oldest shrinks first.
    by_age = sorted(replica_sets, key=age, reverse=to_add > 0)
    ordered = sorted(by_age, key=lambda each: -each.spec.replicas)
    sizes: list[int] = []
    left = to_add
    for each in ordered:
        share = _share(deployment, each) if left else 0
        added = min(share, left) if to_add > 0 else max(share, left)
        left -= added
        sizes.append(each.spec.replicas + added)
    # The largest gets the rounding remainder.
    sizes[0] = max(0, sizes[0] + left)
    return list(zip(ordered, sizes, strict=True))


def _share(deployment: Deployment, replica_set: ReplicaSet) -> int:
    """Replicas to add or remove, so that it keeps its share of the Deployment."""
    size = replica_set.spec.replicas
    if deployment.spec.replicas == 0:
        return -size
    # If the annotation was removed, use the current replicas.
    before = read_count(replica_set, MAX_REPLICAS) or deployment.status.get("replicas") or 0
    if before == 0:
        return 0
    most = deployment.spec.replicas + max_surge(deployment)
    return (2 * size * most + before) // (2 * before) - size
