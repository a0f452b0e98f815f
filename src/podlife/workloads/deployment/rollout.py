"""A Deployment with its ReplicaSets, the steps of a rollout, and the ReplicaSet of a new template. Pure.

A ReplicaSet is identified by its template and not by its hash, so those created by kube-controller-manager are used
as they are. The hash only names a ReplicaSet: kube-controller-manager hashes Go's representation of the template,
podlife its JSON, so the two differ for the same template and neither reads the other's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.client import DEPLOYMENTS, REPLICA_SETS
from podlife.podcontrol import owner_of, validate_selector
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.status import safe_encode
from podlife.workloads.views import Template

_BEGINNING = datetime.min.replace(tzinfo=UTC)
HASH_LABEL = "pod-template-hash"

# Map fields of a template: an empty map equals an absent one. For other objects an empty one has a meaning
# (`emptyDir: {}`).
_MAPS = frozenset(("annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"))
_MOST_NAME_CHARACTERS = 253


@dataclass(frozen=True, slots=True)
class Rollout:
    deployment: Deployment
    # The ReplicaSet of the Deployment's template.
    new: ReplicaSet | None
    # All others, oldest first.
    old: tuple[ReplicaSet, ...] = ()
    # Whether any of their pods exists and has not finished.
    has_old_pods: bool = False

    @property
    def replica_sets(self) -> tuple[ReplicaSet, ...]:
        return self.old if self.new is None else (*self.old, self.new)


@dataclass(frozen=True, slots=True)
class Scale:
    """Always writes the size annotations, even if the number of replicas stays."""

    replica_set: ReplicaSet
    replicas: int


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The next step; the following one is decided when its effect has been observed."""

    # Create the new ReplicaSet with this many replicas.
    create: int | None = None
    scale: tuple[Scale, ...] = ()
    # Delete these old ReplicaSets.
    remove: tuple[ReplicaSet, ...] = ()
    # Whether progress and deadline are reported: not while it is scaled or paused.
    reports_progress: bool = True


def rollout_of(
    deployment: Deployment, replica_sets: Iterable[ReplicaSet], *, has_old_pods: bool = False
) -> Rollout:
    """If several ReplicaSets have the Deployment's template, the oldest is `new`."""
    known = sorted(replica_sets, key=age)
    template = deployment.spec.template
    new = next((each for each in known if is_same_template(each.spec.template, template)), None)
    old = tuple(each for each in known if each is not new)
    return Rollout(deployment, new, old, has_old_pods)


def age(replica_set: ReplicaSet) -> tuple[datetime, str]:
    """Sort key: oldest first."""
    metadata = replica_set.metadata
    return metadata.creation_timestamp or _BEGINNING, metadata.name


def active(replica_sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """ReplicaSets with replicas."""
    return [each for each in replica_sets if each.spec.replicas > 0]


def wanted(replica_sets: Sequence[ReplicaSet]) -> int:
    return sum(each.spec.replicas for each in replica_sets)


def total(replica_sets: Iterable[ReplicaSet], count: str) -> int:
    """The sum of a count in their status."""
    return sum(each.status.get(count) or 0 for each in replica_sets)


def is_same_template(one: Template, other: Template) -> bool:
    """Whether both create the same pods, whatever hash their labels carry."""
    return bool(_comparable(one) == _comparable(other))


def template_hash(template: Template, collisions: int | None) -> str:
    """Differs for each number of collisions."""
    text = msgspec.json.encode(_comparable(template), order="deterministic")
    salt = b"" if collisions is None else (collisions & 0xFFFFFFFF).to_bytes(8, "little")
    return safe_encode(int.from_bytes(hashlib.blake2b(text + salt, digest_size=4).digest(), "little"))


def replica_set_name(deployment_name: str, hash_: str) -> str:
    return f"{deployment_name[: _MOST_NAME_CHARACTERS - 1 - len(hash_)]}-{hash_}"


def make_replica_set(deployment: Deployment, replicas: int, annotations: Mapping[str, str]) -> Object:
    """For the Deployment's current template. Raises SelectorMismatchError and InvalidOwnerError."""
    spec = deployment.spec
    validate_selector(deployment.selector, spec.template)
    hash_ = template_hash(spec.template, deployment.status.get("collisionCount"))
    metadata = spec.template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH_LABEL: hash_}
    matched = {**(spec.selector.get("matchLabels") or {}), HASH_LABEL: hash_}
    wanted: Object = {
        "replicas": replicas,
        "selector": {**spec.selector, "matchLabels": matched},
        "template": {**spec.template, "metadata": {**metadata, "labels": labels}},
    }
    if spec.min_ready_seconds:
        wanted["minReadySeconds"] = spec.min_ready_seconds
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": replica_set_name(deployment.metadata.name, hash_),
            "namespace": deployment.metadata.namespace,
            "labels": labels,
            "annotations": dict(annotations),
            "ownerReferences": [owner_of(deployment, DEPLOYMENTS).controller_ref().to_object()],
        },
        "spec": wanted,
    }


def _comparable(template: Template) -> Any:
    metadata = dict(template.get("metadata") or {})
    labels = metadata.get("labels") or {}
    metadata["labels"] = {key: value for key, value in labels.items() if key != HASH_LABEL}
    return _without_empty({**template, "metadata": metadata})


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(each) for key, each in value.items()}
    return {
        key: each
        for key, each in kept.items()
        if each is not None and each != [] and not (each == {} and key in _MAPS)
    }
