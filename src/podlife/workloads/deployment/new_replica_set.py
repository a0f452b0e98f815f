"""Finds the ReplicaSet of a template, and builds the one for a new template. Pure.

A ReplicaSet is identified by its template and not by its hash, so those created by kube-controller-manager are used
as they are. The hash only names a ReplicaSet: kube-controller-manager hashes Go's representation of the template,
podlife its JSON, so the two differ for the same template and neither reads the other's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.client import DEPLOYMENTS, REPLICA_SETS
from podlife.podcontrol import owner_of, validate_selector
from podlife.workloads.deployment.views import Deployment
from podlife.workloads.views import Template

HASH_LABEL = "pod-template-hash"

# The fields of a template that hold maps: one without entries is as good as none. Of any other field that is an
# object, an empty one says something (`emptyDir: {}`).
_MAPS = frozenset(("annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"))
# No vowels and nothing that looks like one: no words come of it.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MOST_NAME_CHARACTERS = 253


def is_same_template(one: Template, other: Template) -> bool:
    """Whether the same pods come of both, whatever hash their labels carry."""
    return bool(_comparable(one) == _comparable(other))


def template_hash(template: Template, collisions: int | None) -> str:
    """Another one with every collision."""
    text = msgspec.json.encode(_comparable(template), order="deterministic")
    salt = b"" if collisions is None else (collisions & 0xFFFFFFFF).to_bytes(8, "little")
    number = int.from_bytes(hashlib.blake2b(text + salt, digest_size=4).digest(), "little")
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(number))


def replica_set_name(deployment_name: str, hash_: str) -> str:
    return f"{deployment_name[: _MOST_NAME_CHARACTERS - 1 - len(hash_)]}-{hash_}"


def make_replica_set(deployment: Deployment, replicas: int, annotations: Mapping[str, str]) -> Object:
    """The ReplicaSet of the Deployment's template as it is now. Raises SelectorMismatchError where the Deployment
    would not know it as its own, InvalidOwnerError for a Deployment that does not say who it is."""
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
    return _without_nothing({**template, "metadata": metadata})


def _without_nothing(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nothing(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_nothing(each) for key, each in value.items()}
    return {
        key: each
        for key, each in kept.items()
        if each is not None and each != [] and not (each == {} and key in _MAPS)
    }
