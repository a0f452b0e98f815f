"""PersistentVolumes."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults import default_volume_source
from podlife.api.defaults.resource_lists import default_resource_list
from podlife.api.field_errors import FieldError, bad_value, forbidden, not_supported, required
from podlife.api.names import check_dns_subdomain
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.persistent_volume_claims import VOLUME_MODES, validate_access_modes
from podlife.apiserver.strategies.core.pod.node_selection import validate_node_selector
from podlife.apiserver.strategies.field_checks import immutable, not_one_of, problems_at, with_backsteps
from podlife.apiserver.strategies.object_diff import describe_difference
from podlife.apiserver.strategies.strategy import Strategy

_POLICIES = frozenset({"Delete", "Recycle", "Retain"})
# Everything else in the spec is the volume's source.
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


class PersistentVolumeStrategy(Strategy):
    has_status = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        for field in ("accessModes", "mountOptions", "storageClassName"):
            if not spec.get(field, True):
                del spec[field]
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        spec.setdefault("volumeMode", "Filesystem")
        if capacity := spec.get("capacity"):
            default_resource_list(capacity)
        default_volume_source(spec)
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        if created := obj["metadata"].get("creationTimestamp"):
            obj["status"]["lastPhaseTransitionTime"] = created

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        modes = spec.get("accessModes") or []
        errors = [] if modes else [required("spec.accessModes")]
        errors += validate_access_modes(modes, "spec.accessModes")
        errors += _validate_capacity(spec.get("capacity") or {})
        policy = spec["persistentVolumeReclaimPolicy"]
        if policy not in _POLICIES:
            errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES))
        errors += _validate_affinity(spec)
        errors += _validate_source(spec)
        if name := spec.get("storageClassName"):
            errors += problems_at("spec.storageClassName", name, check_dns_subdomain(name))
        if (mode := spec["volumeMode"]) not in VOLUME_MODES:
            errors.append(not_supported("spec.volumeMode", mode, VOLUME_MODES))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = _source(old["spec"]), _source(new["spec"])
        errors: list[FieldError] = []
        if before != after:
            detail = "spec.persistentvolumesource is immutable after creation\n"
            detail += describe_difference(before, after)
            errors.append(forbidden("spec.persistentvolumesource", detail))
        errors += immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))
        affinity = old["spec"].get("nodeAffinity")
        if affinity is not None:
            errors += immutable("nodeAffinity", new["spec"].get("nodeAffinity"), affinity)
        return errors


def _source(spec: Object) -> Object:
    return {field: value for field, value in spec.items() if field not in _NOT_SOURCES}


def _validate_capacity(capacity: Object) -> list[FieldError]:
    errors = [] if capacity else [required("spec.capacity")]
    if set(capacity) != {"storage"}:
        errors.append(not_one_of("spec.capacity", capacity or None, ("storage",)))
    for name, amount in capacity.items():
        if parse_nanos(amount) <= 0:
            errors.append(bad_value(f"spec.capacity[{name}]", amount, "must be greater than zero"))
    return errors


def _validate_affinity(spec: Object) -> list[FieldError]:
    affinity = spec.get("nodeAffinity")
    if affinity is None:
        if "local" in spec:
            return [required("spec.nodeAffinity", "Local volume requires node affinity")]
        return []
    if (needed := affinity.get("required")) is None:
        return [required("spec.nodeAffinity.required", "must specify required node constraints")]
    return validate_node_selector(needed, "spec.nodeAffinity.required")


def _validate_source(spec: Object) -> list[FieldError]:
    sources = sorted(_source(spec))
    if not sources:
        return [required("spec", "must specify a volume type")]
    errors = [
        forbidden(f"spec.{source}", "may not specify more than 1 volume type") for source in sources[1:]
    ]
    for kind in ("hostPath", "local"):
        if (source := spec.get(kind)) is not None:
            target = source.get("path", "")
            if not target:
                errors.append(required(f"spec.{kind}.path"))
            elif with_backsteps(target):
                errors.append(bad_value(f"spec.{kind}.path", target, "must not contain '..'"))
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden("spec.persistentVolumeReclaimPolicy", detail))
    return errors
