"""A Deployment with its ReplicaSets, and the steps of a rollout. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from podlife.workloads.deployment.new_replica_set import is_same_template
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.replicaset.views import ReplicaSet

_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rollout:
    deployment: Deployment
    # The one of the Deployment's template.
    new: ReplicaSet | None
    # All others, the oldest first.
    old: tuple[ReplicaSet, ...] = ()
    # Whether any of their pods is still there and not at its end.
    has_old_pods: bool = False

    @property
    def replica_sets(self) -> tuple[ReplicaSet, ...]:
        return self.old if self.new is None else (*self.old, self.new)


@dataclass(frozen=True, slots=True)
class Scale:
    """Always with the annotations that say what it was scaled for, even to the number it has."""

    replica_set: ReplicaSet
    replicas: int


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """What comes next; when it has been seen to be done, it is decided again."""

    # The new ReplicaSet is created, with so many replicas.
    create: int | None = None
    scale: tuple[Scale, ...] = ()
    # Old ReplicaSets that are not kept any longer.
    remove: tuple[ReplicaSet, ...] = ()
    # Whether progress and deadline are reported: not while it is scaled or paused.
    tells_progress: bool = True


def rollout_of(
    deployment: Deployment, replica_sets: Iterable[ReplicaSet], *, has_old_pods: bool = False
) -> Rollout:
    """Should there be several of the Deployment's template, the oldest one is the new one."""
    known = sorted(replica_sets, key=age)
    template = deployment.spec.template
    new = next((each for each in known if is_same_template(each.spec.template, template)), None)
    old = tuple(each for each in known if each is not new)
    return Rollout(deployment, new, old, has_old_pods)


def age(replica_set: ReplicaSet) -> tuple[datetime, str]:
    """The key by which the oldest come first."""
    metadata = replica_set.metadata
    return metadata.creation_timestamp or _BEGINNING, metadata.name


def active(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Those that are to have pods."""
    return [each for each in replica_sets if each.spec.replicas > 0]


def wanted(replica_sets: Sequence[ReplicaSet]) -> int:
    """How many pods they are to have."""
    return sum(each.spec.replicas for each in replica_sets)


def total(replica_sets: Iterable[ReplicaSet], count: str) -> int:
    """The sum of one of the counts of their status."""
    return sum(each.status.get(count) or 0 for each in replica_sets)
