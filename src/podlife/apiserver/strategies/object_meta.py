"""Validation of the metadata of all kinds, on create and on update.

The registry fills in uid, creationTimestamp and resourceVersion beforehand; a strategy gives the rule for names.
GD-66: an update never changes a deletionTimestamp or its grace period, and adds no finalizers to an object that is
being deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required, too_long
from podlife.api.labels import validate_annotations, validate_labels
from podlife.api.names import check_dns_label, check_label_key
from podlife.apiserver.strategies.field_checks import check_at, immutable, non_negative, require_at

_KEPT_WHEN_EMPTY = frozenset({"deletionGracePeriodSeconds", "name", "uid"})
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_IMMUTABLE_FIELDS = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)


_LONGEST_MANAGER_BYTES = 128
_LONGEST_SUBRESOURCE_BYTES = 256


class NameCheck(Protocol):
    def __call__(self, name: str, *, prefix: bool) -> list[str]: ...


def default_metadata(meta: Object) -> None:
    """Leave out what upstream leaves out: empty maps, lists and strings."""
    if not all(meta.values()):
        for field in [name for name, value in meta.items() if not value and name not in _KEPT_WHEN_EMPTY]:
            del meta[field]


def validate_metadata(
    meta: Object, namespaced: bool, name_check: NameCheck, *, qualified: bool = True
) -> list[FieldError]:
    """Validate the metadata of a new object, whose name has been generated already."""
    errors: list[FieldError] = []
    if prefix := meta.get("generateName"):
        errors += check_at("metadata.generateName", prefix, partial(name_check, prefix=True))
    if name := meta.get("name"):
        errors += check_at("metadata.name", name, partial(name_check, prefix=False))
    else:
        errors.append(required("metadata.name", "name or generateName is required"))
    errors += _validate_namespace(meta.get("namespace", ""), namespaced)
    errors += non_negative("metadata.generation", meta.get("generation"))
    errors += _validate_maps_and_owners(meta) + _validate_managers(meta)
    return errors + _validate_finalizers(meta.get("finalizers") or (), qualified=qualified)


def validate_template_metadata(meta: Object, path: str) -> FieldErrors:
    """The metadata of objects that are made from a template: labels and annotations only."""
    yield from validate_annotations(meta.get("annotations") or {}, f"{path}.annotations")
    yield from validate_labels(meta.get("labels") or {}, f"{path}.labels")
    for field in meta:
        if field not in ("annotations", "labels"):
            yield forbidden(f"{path}.{field}", "cannot be set")


def _validate_managers(meta: Object) -> list[FieldError]:
    """Clients choose the names in managedFields; the server writes everything else."""
    errors: list[FieldError] = []
    for index, entry in enumerate(meta.get("managedFields") or ()):
        path = f"metadata.managedFields[{index}]"
        errors += validate_manager(f"{path}.manager", entry.get("manager", ""))
        if len(entry.get("subresource", "").encode()) > _LONGEST_SUBRESOURCE_BYTES:
            errors.append(too_long(f"{path}.subresource", _LONGEST_SUBRESOURCE_BYTES))
    return errors


def validate_manager(path: str, name: str) -> list[FieldError]:
    """Validate the name of a field manager."""
    errors: list[FieldError] = []
    if len(name.encode()) > _LONGEST_MANAGER_BYTES:
        errors.append(too_long(path, _LONGEST_MANAGER_BYTES))
    if not name.isprintable():
        position = 0
        for letter in name:
            if not letter.isprintable():
                detail = f"invalid character U+{ord(letter):04X} (at position {position})"
                errors.append(bad_value(path, name, detail))
            position += len(letter.encode())
    return errors


def _validate_namespace(namespace: str, namespaced: bool) -> list[FieldError]:
    if not namespaced:
        return [forbidden("metadata.namespace", "not allowed on this type")] if namespace else []
    return require_at("metadata.namespace", namespace, check_dns_label)


def _validate_maps_and_owners(meta: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if labels := meta.get("labels"):
        errors += validate_labels(labels, "metadata.labels")
    if annotations := meta.get("annotations"):
        errors += validate_annotations(annotations, "metadata.annotations")
    if owners := meta.get("ownerReferences"):
        errors += _validate_owner_references(owners)
    return errors


def _validate_owner_references(owners: Sequence[Object]) -> list[FieldError]:
    path = "metadata.ownerReferences"
    errors: list[FieldError] = []
    controller = ""
    for owner in owners:
        errors += _validate_owner(owner, path)
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                errors.append(bad_value(path, owners, detail))
            else:
                controller = name
    return errors


def _validate_owner(owner: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = owner.get("apiVersion", "")
    # More than one slash, or nothing behind it, leaves no version.
    if not api_version or api_version.count("/") > 1 or api_version.endswith("/"):
        errors.append(bad_value(f"{path}.apiVersion", api_version, "version must not be empty"))
    errors += [
        bad_value(f"{path}.{field}", "", "must not be empty")
        for field in ("kind", "name", "uid")
        if not owner.get(field)
    ]
    if api_version == "v1" and owner.get("kind") == "Event":
        errors.append(bad_value(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _validate_finalizers(finalizers: Sequence[str], *, qualified: bool) -> list[FieldError]:
    path = "metadata.finalizers"
    errors = [bad_value(path, name, text) for name in finalizers for text in check_label_key(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(bad_value(path, list(finalizers), detail))
    return errors + (_validate_unqualified(finalizers) if qualified else [])


def _validate_unqualified(finalizers: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, name in enumerate(finalizers):
        errors += check_at(f"metadata.finalizers[{index}]", name, check_qualified)
    return errors


def check_qualified(finalizer: str) -> list[str]:
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return []
    return ["name is neither a standard finalizer name nor is it fully qualified"]


def validate_metadata_update(new: Object, old: Object, *, qualified: bool = True) -> list[FieldError]:
    """Validate an update of metadata, after the registry has restored what no client can change."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        errors += _validate_no_new_finalizers(new, old)
    if not new.get("resourceVersion"):
        errors.append(bad_value("metadata.resourceVersion", "", "must be specified for an update"))
    if (generation := new.get("generation", 0)) < old.get("generation", 0):
        errors.append(bad_value("metadata.generation", generation, "must not be decremented"))
    for field, absent in _IMMUTABLE_FIELDS:
        errors += immutable(f"metadata.{field}", new.get(field, absent), old.get(field, absent))
    errors += _validate_maps_and_owners(new) + _validate_managers(new)
    return errors + (_validate_unqualified(new.get("finalizers") or ()) if qualified else [])


def _validate_no_new_finalizers(new: Object, old: Object) -> list[FieldError]:
    extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    shown = ", ".join(f'"{name}"' for name in extra)
    detail = "no new finalizers can be added if the object is being deleted, found new finalizers []string"
    return [forbidden("metadata.finalizers", f"{detail}{{{shown}}}")] if extra else []
