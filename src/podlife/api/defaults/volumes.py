"""Defaults of volumes: an empty directory where no source is named, file modes, the claims of templates."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import (
    canonical,
    default_resource_lists,
    drop_empty,
    drop_empty_parts,
    pull_policy,
)

_MODE = 0o644
_WITH_MODE = ("configMap", "secret", "downwardAPI", "projected")
_MODE_KEEPS = frozenset({"defaultMode", "optional", "sources"})
_EMPTY_DIR_KEEPS = frozenset({"sizeLimit"})
_CLAIM_KEEPS = frozenset(
    {
        "dataSource",
        "dataSourceRef",
        "resources",
        "selector",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
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
        if (field := item.get("fieldRef")) is not None and not field.get("apiVersion"):
            field["apiVersion"] = "v1"
        if (resource := item.get("resourceFieldRef")) is not None:
            resource.setdefault("divisor", "0")
            canonical(resource, "divisor")


def default_volume_source(holder: Object) -> None:
    """The sources that pods and persistent volumes share, and the rarer ones of pods."""
    if (host_path := holder.get("hostPath")) is not None:
        host_path.setdefault("type", "")
    if (claim := holder.get("persistentVolumeClaim")) is not None and not claim.get("readOnly", True):
        del claim["readOnly"]
    if (iscsi := holder.get("iscsi")) is not None and not iscsi.get("iscsiInterface"):
        iscsi["iscsiInterface"] = "default"
    if (ephemeral := holder.get("ephemeral")) is not None:
        template = ephemeral.get("volumeClaimTemplate")
        if template is not None:
            template.setdefault("metadata", {})
            default_claim_spec(template.setdefault("spec", {}))
    if (image := holder.get("image")) is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = pull_policy(image.get("reference", ""))
    _default_disks(holder)


def _default_disks(holder: Object) -> None:
    if (rbd := holder.get("rbd")) is not None:
        for field, value in (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")):
            if not rbd.get(field):
                rbd[field] = value
    if (disk := holder.get("azureDisk")) is not None:
        disk.setdefault("cachingMode", "ReadWrite")
        disk.setdefault("fsType", "ext4")
        disk.setdefault("readOnly", False)
        disk.setdefault("kind", "Shared")
    if (scale_io := holder.get("scaleIO")) is not None:
        for field, value in (("storageMode", "ThinProvisioned"), ("fsType", "xfs")):
            if not scale_io.get(field):
                scale_io[field] = value


def default_claim_spec(spec: Object) -> None:
    drop_empty(spec, _CLAIM_KEEPS)
    spec.setdefault("volumeMode", "Filesystem")
    if selector := spec.get("selector"):
        drop_empty_parts(selector)
    default_resource_lists(spec.setdefault("resources", {}))
    for field in ("dataSource", "dataSourceRef"):
        if (source := spec.get(field)) is not None:
            source.setdefault("apiGroup", None)
