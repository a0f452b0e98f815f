"""The RollingUpdate strategy: scales the new ReplicaSet up and the old ones down within maxSurge and maxUnavailable.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from podlife.workloads.deployment.rollout import Rollout, RolloutStep, Scale, active, wanted
from podlife.workloads.deployment.rollout_limits import max_surge, max_unavailable
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.replicaset.views import ReplicaSet


def roll(rollout: Rollout) -> RolloutStep | None:
    """None when there is nothing more to scale."""
    deployment, new = rollout.deployment, rollout.new
    size = new_size(rollout)
    if new is None:
        return RolloutStep(create=size)
    if new.spec.replicas != size:
        return RolloutStep(scale=(Scale(new, size),))
    smaller = _smaller_old(deployment, new, active(rollout.old), wanted(rollout.replica_sets))
    return RolloutStep(scale=smaller) if smaller else None


def new_size(rollout: Rollout) -> int:
    """As large as wanted, as far as there is room for more pods now."""
    deployment, size = rollout.deployment, rollout.new.spec.replicas if rollout.new else 0
    replicas = deployment.spec.replicas
    if size >= replicas:
        return replicas
    room = replicas + max_surge(deployment) - wanted(rollout.replica_sets)
    return size + max(0, min(room, replicas - size))


def _smaller_old(
    deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet], all_wanted: int
) -> tuple[Scale, ...]:
    least = deployment.spec.replicas - max_unavailable(deployment)
    # Pods of the new one that do not become available must not cost more old ones.
    most = all_wanted - least - (new.spec.replicas - _available(new))
    if most <= 0:
        return ()
    sizes = _without_unhealthy(old, most)
    surplus = sum(map(_available, (*old, new))) - least
    for index in range(len(old)):
        gone = max(0, min(sizes[index], surplus))
        sizes[index] -= gone
        surplus -= gone
    return tuple(
        Scale(each, size) for each, size in zip(old, sizes, strict=True) if each.spec.replicas != size
    )


def _without_unhealthy(old: Sequence[ReplicaSet], most: int) -> list[int]:
    """The sizes without the pods that are not available: they go first, since nobody misses them, and the rollout
    would wait for them."""
    sizes = []
    for each in old:
        size = each.spec.replicas
        gone = min(most, size - _available(each))
        most -= gone
        sizes.append(size - gone)
    return sizes


def _available(replica_set: ReplicaSet) -> int:
    """Pods it is scaling down count as gone, even if its status still includes them."""
    return min(replica_set.status.get("availableReplicas") or 0, replica_set.spec.replicas)
