"""PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.printers.cells import age
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _volume(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    claim = spec.get("claimRef")
    return [
        obj["metadata"].get("name", ""),
        spec.get("capacity", {}).get("storage", "0"),
        _modes(spec.get("accessModes", ())),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _claim(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    # The granted size is shown once there is a volume; the requested size never is.
    is_bound = bool(spec.get("volumeName"))
    return [
        obj["metadata"].get("name", ""),
        _phase(obj),
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", "0") if is_bound else "",
        _modes(status.get("accessModes", ())) if is_bound else "",
        _class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _phase(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = obj.get("status", {}).get("phase", "")
    return phase


def _class(obj: Object) -> str:
    found: str = (
        obj["metadata"]
        .get("annotations", {})
        .get(_CLASS_ANNOTATION, obj.get("spec", {}).get("storageClassName", ""))
    )
    return found


def _modes(modes: Sequence[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


PERSISTENT_VOLUMES = Printer(columns("persistentvolumes"), _volume)
PERSISTENT_VOLUME_CLAIMS = Printer(columns("persistentvolumeclaims"), _claim)
