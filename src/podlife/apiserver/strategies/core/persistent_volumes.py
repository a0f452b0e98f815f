"""PersistentVolumes, and PersistentVolumeClaims, alone and as templates of ephemeral volumes and StatefulSets."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults import default_claim_spec, default_volume_source
from podlife.api.defaults.fields import default_resource_list, drop_empty_fields, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, not_supported, required
from podlife.api.labels import validate_label_selector
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.node_selection import validate_node_selector
from podlife.apiserver.strategies.field_checks import (
    check_at,
    check_backsteps,
    describe_difference,
    immutable,
    one_of,
    require_at,
    show_times,
)
from podlife.apiserver.strategies.object_meta import validate_template_metadata
from podlife.apiserver.strategies.strategy import Strategy

_ACCESS_MODES = frozenset({"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"})
_VOLUME_MODES = frozenset({"Block", "Filesystem"})
_RECLAIM_POLICIES = frozenset({"Delete", "Recycle", "Retain"})
# Everything else in the spec is the volume's source.
_NOT_SOURCES = frozenset(
    {"accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity"}
    | {"persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName", "volumeMode"}
)
_IMMUTABLE_SPEC = (
    "spec is immutable after creation except resources.requests "
    "and volumeAttributesClassName for bound claims"
)


def validate_claim_template(template: Object, path: str) -> FieldErrors:
    yield from validate_template_metadata(template.get("metadata") or {}, f"{path}.metadata")
    yield from validate_claim_spec(template.get("spec") or {}, f"{path}.spec")


def _validate_access_modes(modes: list[str], path: str) -> FieldErrors:
    yield from (not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES)
    others = any(mode in _ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes)
    if "ReadWriteOncePod" in modes and others:
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def validate_claim_spec(spec: Object, path: str) -> FieldErrors:
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from validate_label_selector(spec.get("selector"), f"{path}.selector")
    yield from _validate_access_modes(modes, f"{path}.accessModes")
    yield from _validate_storage(spec, f"{path}.resources[storage]")
    for field in ("storageClassName", "volumeAttributesClassName"):
        if name := spec.get(field):
            yield from check_at(f"{path}.{field}", name, check_dns_subdomain)
    yield from one_of(f"{path}.volumeMode", spec.get("volumeMode"), _VOLUME_MODES)
    yield from _validate_data_sources(spec, path)


def _validate_storage(spec: Object, path: str) -> FieldErrors:
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required(path)
    elif parse_nanos(size) <= 0:
        yield bad_value(path, size, "must be greater than zero")


def _validate_data_sources(spec: Object, path: str) -> FieldErrors:
    for field in ("dataSource", "dataSourceRef"):
        if (source := spec.get(field)) is not None:
            yield from _validate_data_source(source, f"{path}.{field}")
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and reference:
        if reference.get("namespace"):
            yield bad_value(path, {}, "may not be specified when dataSourceRef.namespace is specified")
        elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
            yield bad_value(path, {}, "must match dataSourceRef")


def _validate_data_source(source: Object, path: str) -> FieldErrors:
    yield from (required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field))
    kind, group, namespace = source.get("kind", ""), source.get("apiGroup"), source.get("namespace")
    if not group and kind != "PersistentVolumeClaim":
        yield bad_value(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group:
        yield from check_at(f"{path}.apiGroup", group, check_dns_subdomain)
    if namespace:
        yield from check_at(f"{path}.namespace", namespace, check_dns_label)


class PersistentVolumeClaimStrategy(Strategy):
    has_status = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        fill_empty(status, phase="Pending")
        show_times(status, "lastProbeTime", "lastTransitionTime")
        for field in ("capacity", "allocatedResources"):
            if amounts := status.get(field):
                default_resource_list(amounts)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _settle_data_sources(obj["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        return list(validate_claim_spec(obj["spec"], "spec"))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        before, after = dict(old["spec"]), dict(new["spec"])
        if not before.get("volumeName") and "volumeName" in after:
            before["volumeName"] = after["volumeName"]
        # A claim created before a default class existed may get its class later.
        if before.get("storageClassName") is None and after.get("storageClassName") is not None:
            before["storageClassName"] = after["storageClassName"]
        new_size, old_size = _size(after), _size(before)
        if (new.get("status") or {}).get("phase") == "Bound":
            after["resources"] = before["resources"]
            after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
            before.setdefault("volumeAttributesClassName", None)
        if after != before:
            detail = f"{_IMMUTABLE_SPEC}\n{describe_difference(before, after)}"
            errors.append(forbidden("spec", detail))
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if new_size < old_size and new_size <= parse_nanos(capacity):
            detail = "field can not be less than status.capacity"
            errors.append(forbidden("spec.resources.requests.storage", detail))
        return errors + immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def _settle_data_sources(spec: Object) -> None:
    """`dataSource` may name only claims and snapshots. Within one namespace both fields are equal."""
    if (source := spec.get("dataSource")) is not None:
        known = (source.get("apiGroup") or "", source.get("kind"))
        if known not in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")):
            del spec["dataSource"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = {field: value for field, value in reference.items() if field != "namespace"}


def _size(spec: Object) -> int:
    return parse_nanos(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


class PersistentVolumeStrategy(Strategy):
    has_status = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill_empty(spec, persistentVolumeReclaimPolicy="Retain")
        spec.setdefault("volumeMode", "Filesystem")
        default_volume_spec(spec)
        fill_empty(obj.setdefault("status", {}), phase="Pending")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        if created := obj["metadata"].get("creationTimestamp"):
            obj["status"]["lastPhaseTransitionTime"] = created

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        modes = spec.get("accessModes") or []
        errors = [] if modes else [required("spec.accessModes")]
        errors += _validate_access_modes(modes, "spec.accessModes")
        errors += _validate_capacity(spec.get("capacity") or {})
        policy = spec["persistentVolumeReclaimPolicy"]
        errors += one_of("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
        errors += _validate_affinity(spec)
        errors += _validate_source(spec)
        if name := spec.get("storageClassName"):
            errors += check_at("spec.storageClassName", name, check_dns_subdomain)
        return errors + one_of("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES)

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


def default_volume_spec(spec: Object) -> None:
    drop_empty_fields(spec, "accessModes", "mountOptions", "storageClassName")
    if capacity := spec.get("capacity"):
        default_resource_list(capacity)
    default_volume_source(spec)


def validate_inline_volume(spec: Object, path: str) -> FieldErrors:
    """The volume of an attachment without a PersistentVolume."""
    inline = "in the context of inline volumes"
    for field in ("claimRef", "capacity"):
        if spec.get(field):
            yield forbidden(f"{path}.{field}", f"may not be specified {inline}")
    if not _source(spec):
        yield required(path, "must specify a volume type")
    if spec.get("csi") is None:
        yield required(f"{path}.csi", f"has to be specified {inline}")
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes")
    yield from _validate_access_modes(modes, f"{path}.accessModes")
    if spec.get("persistentVolumeReclaimPolicy", "Retain") not in ("", "Retain"):
        yield forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {inline}")
    for field in ("nodeAffinity", "storageClassName"):
        if spec.get(field):
            yield forbidden(f"{path}.{field}", f"may not be specified {inline}")
    if spec.get("volumeMode", "Filesystem") != "Filesystem":
        yield forbidden(f"{path}.volumeMode", f"may not specify volumeMode other than Filesystem {inline}")


def _source(spec: Object) -> Object:
    return {field: value for field, value in spec.items() if field not in _NOT_SOURCES}


def _validate_capacity(capacity: Object) -> FieldErrors:
    if not capacity:
        yield required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield not_supported("spec.capacity", capacity or None, ("storage",))
    for name, amount in capacity.items():
        if parse_nanos(amount) <= 0:
            yield bad_value(f"spec.capacity[{name}]", amount, "must be greater than zero")


def _validate_affinity(spec: Object) -> FieldErrors:
    if (affinity := spec.get("nodeAffinity")) is None:
        if "local" in spec:
            yield required("spec.nodeAffinity", "Local volume requires node affinity")
    elif (needed := affinity.get("required")) is None:
        yield required("spec.nodeAffinity.required", "must specify required node constraints")
    else:
        yield from validate_node_selector(needed, "spec.nodeAffinity.required")


def _validate_source(spec: Object) -> FieldErrors:
    sources = sorted(_source(spec))
    if not sources:
        yield required("spec", "must specify a volume type")
        return
    for name in sources[1:]:
        yield forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    for kind in ("hostPath", "local"):
        if (source := spec.get(kind)) is not None:
            yield from require_at(f"spec.{kind}.path", source.get("path", ""), check_backsteps)
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden("spec.persistentVolumeReclaimPolicy", detail)
