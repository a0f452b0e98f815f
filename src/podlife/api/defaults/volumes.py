"""Defaults of volumes: emptyDir if no source is named, file modes, claims in templates."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import (
    canonical,
    default_resource_lists,
    drop_empty,
    drop_empty_fields,
    drop_empty_parts,
    fill_absent,
    fill_empty,
    pull_policy,
)

_MODE = 0o644
_WITH_MODE = ("configMap", "secret", "downwardAPI", "projected")
_MODE_KEEPS = frozenset({"defaultMode", "optional", "sources"})
_EMPTY_DIR_KEEPS = frozenset({"sizeLimit"})
_CLAIM_KEEPS = frozenset(
    {"dataSource", "dataSourceRef", "resources", "selector", "storageClassName"}
    | {"volumeAttributesClassName", "volumeMode"}
)


def default_volume(volume: Object) -> None:
    if not volume.get("name"):
        volume["name"] = ""
    if len(volume) == 1:
        volume["emptyDir"] = {}
        return
    for kind in _WITH_MODE:
        if (source := volume.get(kind)) is not None:
            drop_empty(source, _MODE_KEEPS)
            if source.get("defaultMode") is None:
                source["defaultMode"] = _MODE
            if kind in ("downwardAPI", "projected"):
                _default_files(kind, source)
            return
    if (empty_dir := volume.get("emptyDir")) is not None:
        drop_empty(empty_dir, _EMPTY_DIR_KEEPS)
        canonical(empty_dir, "sizeLimit")
        return
    default_volume_source(volume)


def _default_files(kind: str, source: Object) -> None:
    if kind == "downwardAPI":
        _default_downward_items(source)
        return
    source.setdefault("sources", [])
    for projection in source["sources"]:
        if (token := projection.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)
        if (downward := projection.get("downwardAPI")) is not None:
            _default_downward_items(downward)
        if (certificate := projection.get("podCertificate")) is not None:
            certificate.setdefault("maxExpirationSeconds", 86400)


def _default_downward_items(source: Object) -> None:
    for item in source.get("items", ()):
        default_references(item)


def default_references(source: Object) -> None:
    """A reference to a field of the pod, or to a resource of one of its containers."""
    if (field := source.get("fieldRef")) is not None:
        fill_empty(field, apiVersion="v1")
    if (resource := source.get("resourceFieldRef")) is not None:
        resource.setdefault("divisor", "0")
        canonical(resource, "divisor")


def default_volume_source(holder: Object) -> None:
    """The sources that pods and persistent volumes share, and the rarer ones of pods."""
    if (host_path := holder.get("hostPath")) is not None:
        host_path.setdefault("type", "")
    if (claim := holder.get("persistentVolumeClaim")) is not None:
        drop_empty_fields(claim, "readOnly")
    if (iscsi := holder.get("iscsi")) is not None:
        fill_empty(iscsi, iscsiInterface="default")
    if (template := (holder.get("ephemeral") or {}).get("volumeClaimTemplate")) is not None:
        template.setdefault("metadata", {})
        default_claim_spec(template.setdefault("spec", {}))
    if (image := holder.get("image")) is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference", ""))
    if (rbd := holder.get("rbd")) is not None:
        fill_empty(rbd, pool="rbd", user="admin", keyring="/etc/ceph/keyring")
    if (disk := holder.get("azureDisk")) is not None:
        fill_absent(disk, cachingMode="ReadWrite", fsType="ext4", readOnly=False, kind="Shared")
    if (scale_io := holder.get("scaleIO")) is not None:
        fill_empty(scale_io, storageMode="ThinProvisioned", fsType="xfs")


def default_claim_spec(spec: Object) -> None:
    drop_empty(spec, _CLAIM_KEEPS)
    spec.setdefault("volumeMode", "Filesystem")
    if selector := spec.get("selector"):
        drop_empty_parts(selector)
    default_resource_lists(spec.setdefault("resources", {}))
    for field in ("dataSource", "dataSourceRef"):
        if (source := spec.get(field)) is not None:
            source.setdefault("apiGroup", None)
