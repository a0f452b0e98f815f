"""Runs an object through a strategy as the registry does on a create, and returns the response as on the wire."""

from __future__ import annotations

import json
import re
from typing import Any

from podlife.api.codec import Object, decode_object, encode
from podlife.api.field_errors import invalid
from podlife.api.status import failure
from podlife.apiserver.registry.metadata import carry_over
from podlife.apiserver.resource import Resource
from podlife.apiserver.strategies import assign_cluster_ip, needs_cluster_ip
from podlife.apiserver.strategies.object_meta import (
    default_metadata,
    validate_metadata,
    validate_metadata_update,
)
from podlife.errors import ApiError

_UID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOT_COMPARED = ("uid", "creationTimestamp", "resourceVersion", "managedFields")


def create(resource: Resource, obj: Object) -> dict[str, Any]:
    """The code and the body of the answer to a create."""
    obj = decode_object(encode(obj))
    strategy = resource.strategy
    try:
        strategy.default(obj)
        default_metadata(obj["metadata"])
        if admit := _ADMISSION.get(resource.plural):
            admit(obj)
        obj["metadata"].pop("generation", None)
        obj["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00Z"
        obj["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
        if strategy.has_generation:
            obj["metadata"]["generation"] = 1
        strategy.prepare_create(obj)
        if resource.plural == "services" and needs_cluster_ip(obj):
            assign_cluster_ip(obj, "10.0.0.0")
        errors = validate_metadata(obj["metadata"], resource.namespaced, strategy.validate_name)
        errors += strategy.validate(obj)
        if errors:
            raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), errors)
    except ApiError as error:
        return {"code": error.code, "body": failure(error)}
    return {"code": 201, "body": obj}


def update(resource: Resource, old: Object, new: Object, subresource: str = "") -> dict[str, Any]:
    """The code and the body of the answer to an update; `old` is what is stored."""
    strategy = resource.strategy
    old, new = decode_object(encode(old)), decode_object(encode(new))
    try:
        strategy.default(new)
        default_metadata(new["metadata"])
        carry_over(new["metadata"], old["metadata"])
        if subresource == "status":
            strategy.prepare_status_update(new, old)
        else:
            strategy.prepare_update(new, old)
            if strategy.has_generation and new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] = old["metadata"]["generation"] + 1
        errors = validate_metadata_update(new["metadata"], old["metadata"])
        if subresource == "status":
            errors += strategy.validate_status_update(new, old)
        else:
            errors += strategy.validate(new) + strategy.validate_update(new, old)
        if errors:
            raise invalid(resource.kind, resource.group, new["metadata"].get("name", ""), errors)
    except ApiError as error:
        return {"code": error.code, "body": failure(error)}
    return {"code": 200, "body": new}


def _admit_pod(pod: Object) -> None:
    """What admission adds to every pod; it has tests of its own."""
    spec = pod["spec"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.get("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            t.get("key", key) == key and t.get("effect", "NoExecute") == "NoExecute" for t in tolerations
        ):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            spec.setdefault("tolerations", []).append(added)


def _admit_node(node: Object) -> None:
    taints = node["spec"].setdefault("taints", [])
    taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})


def _admit_claim(claim: Object) -> None:
    claim["metadata"].setdefault("finalizers", []).append("kubernetes.io/pvc-protection")


def _admit_volume(volume: Object) -> None:
    volume["metadata"].setdefault("finalizers", []).append("kubernetes.io/pv-protection")


_ADMISSION = {
    "pods": _admit_pod,
    "nodes": _admit_node,
    "persistentvolumeclaims": _admit_claim,
    "persistentvolumes": _admit_volume,
}


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what must differ, and with errors in one order: upstream walks maps at random."""
    answer = json.loads(_UID.sub("uid", json.dumps(answer)))
    body = answer["body"]
    if body.get("kind") != "Status":
        status = body.get("status") or {}
        for holder in (status, *status.get("conditions", ())):
            for field in ("lastTransitionTime", "lastPhaseTransitionTime"):
                if holder.get(field):
                    holder[field] = "then"
    meta = body.get("metadata", {})
    for field in NOT_COMPARED:
        meta.pop(field, None)
    if body.get("kind") == "Status":
        body.pop("message", None)
        causes = body.get("details", {}).get("causes", [])
        for cause in causes:
            # A rendering of the difference follows, which differs from upstream's.
            cause["message"] = cause["message"].partition("\n")[0]
        # Upstream checks some things twice on an update.
        unique = {tuple(cause.items()): cause for cause in causes}
        causes[:] = unique.values()
        causes.sort(key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
    return answer
