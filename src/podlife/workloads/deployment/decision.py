"""The next step of a Deployment. Pure.

Recreate starts no pod of the new template before all old pods are gone. RollingUpdate scales the new ReplicaSet up and
the old ones down within maxSurge and maxUnavailable. Old ReplicaSets beyond revisionHistoryLimit are deleted.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from podlife.podcontrol import InvalidInputError
from podlife.workloads.deployment.annotations import revision_of, rollback_revision
from podlife.workloads.deployment.proportional_scale import is_being_scaled, scale
from podlife.workloads.deployment.rollout import Rollout, RolloutStep, Scale, active, age, total, wanted
from podlife.workloads.deployment.status import is_complete
from podlife.workloads.deployment.views import RECREATE, Deployment, max_surge, max_unavailable
from podlife.workloads.replicaset.views import ReplicaSet


def next_step(rollout: Rollout) -> RolloutStep:
    """Raises InvalidInputError for an unknown strategy."""
    deployment = rollout.deployment
    if deployment.is_deleting:
        return RolloutStep(reports_progress=False)
    if deployment.spec.paused:
        remove = () if rollback_revision(deployment) is not None else removable(rollout)
        return RolloutStep(scale=scale(rollout), remove=remove, reports_progress=False)
    strategy = deployment.spec.strategy.type
    # Recreate is not scaled proportionally: all ReplicaSets but one are scaled to zero.
    has_shares = strategy != RECREATE or len(active(rollout.replica_sets)) <= 1
    if has_shares and is_being_scaled(rollout):
        return RolloutStep(scale=scale(rollout), reports_progress=False)
    match strategy:
        case "Recreate":
            step = recreate(rollout)
        case "RollingUpdate":
            step = roll(rollout)
        case _:
            raise InvalidInputError(f"unexpected deployment strategy type: {strategy}")
    if step is not None:
        return step
    return RolloutStep(remove=removable(rollout) if is_complete(deployment, deployment.status) else ())


def recreate(rollout: Rollout) -> RolloutStep | None:
    """None if nothing is left to scale."""
    if running := active(rollout.old):
        return RolloutStep(scale=tuple(Scale(each, 0) for each in running))
    if rollout.has_old_pods or total(rollout.old, "replicas"):
        return RolloutStep()
    replicas = rollout.deployment.spec.replicas
    if rollout.new is None:
        return RolloutStep(create=replicas)
    if rollout.new.spec.replicas != replicas:
        return RolloutStep(scale=(Scale(rollout.new, replicas),))
    return None


def roll(rollout: Rollout) -> RolloutStep | None:
    """None if nothing is left to scale."""
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
    """The sizes without unavailable pods: they go first, because the rollout would wait for them."""
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
