"""PersistentVolumeClaims, alone and as the template inside a pod's ephemeral volume or a StatefulSet."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults import default_claim_spec
from podlife.api.defaults.resource_lists import default_resource_list
from podlife.api.field_errors import FieldError, bad_value, forbidden, not_supported, required
from podlife.api.labels import validate_annotations, validate_label_selector, validate_labels
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.field_checks import immutable, problems_at, show_times
from podlife.apiserver.strategies.object_diff import describe_difference
from podlife.apiserver.strategies.strategy import Strategy

ACCESS_MODES = frozenset({"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"})
VOLUME_MODES = frozenset({"Block", "Filesystem"})
_TEMPLATE_METADATA = frozenset({"annotations", "labels"})
_IMMUTABLE_SPEC = (
    "spec is immutable after creation except resources.requests "
    "and volumeAttributesClassName for bound claims"
)


def validate_claim_template(template: Object, path: str) -> list[FieldError]:
    meta = template.get("metadata") or {}
    errors = validate_annotations(meta.get("annotations") or {}, f"{path}.metadata.annotations")
    errors += validate_labels(meta.get("labels") or {}, f"{path}.metadata.labels")
    errors += [
        forbidden(f"{path}.metadata.{field}", "cannot be set")
        for field in meta
        if field not in _TEMPLATE_METADATA
    ]
    return errors + validate_claim_spec(template.get("spec") or {}, f"{path}.spec")


def validate_access_modes(modes: list[str], path: str) -> list[FieldError]:
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    others = any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes)
    if "ReadWriteOncePod" in modes and others:
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_claim_spec(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += validate_label_selector(spec.get("selector"), f"{path}.selector")
    errors += validate_access_modes(modes, f"{path}.accessModes")
    errors += _validate_storage(spec, f"{path}.resources[storage]")
    for field in ("storageClassName", "volumeAttributesClassName"):
        if name := spec.get(field):
            errors += problems_at(f"{path}.{field}", name, check_dns_subdomain(name))
    if (mode := spec.get("volumeMode", "Filesystem")) not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return errors + _validate_data_sources(spec, path)


def _validate_storage(spec: Object, path: str) -> list[FieldError]:
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        return [required(path)]
    return [] if parse_nanos(size) > 0 else [bad_value(path, size, "must be greater than zero")]


def _validate_data_sources(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("dataSource", "dataSourceRef"):
        if (source := spec.get(field)) is not None:
            errors += _validate_data_source(source, f"{path}.{field}")
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and reference:
        if reference.get("namespace"):
            detail = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(bad_value(path, {}, detail))
        elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
            errors.append(bad_value(path, {}, "must match dataSourceRef"))
    return errors


def _validate_data_source(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    kind, group, namespace = source.get("kind", ""), source.get("apiGroup"), source.get("namespace")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(bad_value(path, kind, detail))
    if group:
        errors += problems_at(f"{path}.apiGroup", group, check_dns_subdomain(group))
    if namespace:
        errors += problems_at(f"{path}.namespace", namespace, check_dns_label(namespace))
    return errors


class PersistentVolumeClaimStrategy(Strategy):
    has_status = True
    returns_deleted_object = True

    def default(self, obj: Object) -> None:
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"
        show_times(status, "lastProbeTime", "lastTransitionTime")
        for field in ("capacity", "allocatedResources"):
            if amounts := status.get(field):
                default_resource_list(amounts)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _settle_data_sources(obj["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_claim_spec(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        before, after = dict(old["spec"]), dict(new["spec"])
        if not before.get("volumeName") and "volumeName" in after:
            before["volumeName"] = after["volumeName"]
        # A class may be set later on a claim that was created before there was a default.
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
        path = "spec.resources.requests.storage"
        if new_size < old_size:
            capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
            if new_size <= parse_nanos(capacity):
                errors.append(forbidden(path, "field can not be less than status.capacity"))
        return errors + immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def _settle_data_sources(spec: Object) -> None:
    """The older field only ever meant claims and snapshots; both fields are equal, unless the newer one refers to
    another namespace."""
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
