"""DefaultStorageClass, StorageObjectInUseProtection and PersistentVolumeClaimResize."""

from __future__ import annotations

import msgspec

from podlife.api.volume_binding import Claim, StorageClass, default_class
from podlife.apiserver.admission import AdmissionRequest, Operation, Plugin, Reader
from podlife.apiserver.storage import Key, Store

_CLAIMS = "persistentvolumeclaims"
_CLASSES = "storageclasses.storage.k8s.io"
_FINALIZERS = {
    _CLAIMS: "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}
_decode_class = msgspec.json.Decoder(StorageClass).decode


def default_storage_class(store: Store) -> Plugin:
    """DefaultStorageClass: a claim without a class gets the one that is marked as default, the newest of several."""

    def plugin(attributes: AdmissionRequest, reader: Reader) -> None:
        claim = attributes.new
        if not _is_written(attributes, Operation.CREATE, _CLAIMS) or claim is None:
            return
        if msgspec.convert(claim, Claim).has_class:
            return
        # The bytes are searched first: most classes are not marked.
        marked = (each.value for each in store.list(_CLASSES) if b"is-default-class" in each.value)
        if (found := default_class(map(_decode_class, marked))) is not None:
            claim.setdefault("spec", {})["storageClassName"] = found.metadata.name

    return plugin


def protect_storage(attributes: AdmissionRequest, reader: Reader) -> None:
    """StorageObjectInUseProtection: finalizers that the protection controllers remove."""
    finalizer = _FINALIZERS.get(attributes.resource.key)
    if finalizer is None or attributes.new is None or attributes.subresource:
        return
    if attributes.operation is Operation.CREATE:
        metadata = attributes.new["metadata"]
        present = metadata.get("finalizers") or []
        if finalizer not in present:
            metadata["finalizers"] = [*present, finalizer]


def restrict_resize(attributes: AdmissionRequest, reader: Reader) -> None:
    """PersistentVolumeClaimResize: only a bound claim grows, and only if its class allows expansion."""
    if not _is_written(attributes, Operation.UPDATE, _CLAIMS):
        return
    new, old = (msgspec.convert(each, Claim) for each in (attributes.new, attributes.old))
    if new.storage <= old.storage or old.status.phase != "Bound":
        # A claim that is not bound does not change: validation, which upstream does first, says so.
        return
    name = new.class_name
    record = reader(Key(_CLASSES, "", name)) if name and name == old.class_name else None
    if record is None or not msgspec.json.decode(record.value).get("allowVolumeExpansion"):
        raise attributes.forbidden(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize"
        )


def _is_written(attributes: AdmissionRequest, operation: Operation, key: str) -> bool:
    return attributes.operation is operation and attributes.resource.key == key and not attributes.subresource
