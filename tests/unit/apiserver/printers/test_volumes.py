from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.printers import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES

from .situation import ANY_AGE, NOW, Situation, named, with_any_age

OLD_CLASS = {"volume.beta.kubernetes.io/storage-class": "old"}


def volume(
    name: str, cells: list[str], status: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any
) -> Situation:
    obj = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": named(name, **(metadata or {})),
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/data"},
            "volumeMode": "Filesystem",
            **spec,
        },
        "status": status,
    }
    return Situation(name, obj, [name, "5Gi", *cells, ANY_AGE, "Filesystem"])


def volumes(now: float) -> list[Situation]:
    bound = {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "team", "name": "disk"}}
    return [
        volume("free", ["RWO", "Retain", "Available", "", "", "<unset>", ""], {"phase": "Available"}),
        volume(
            "bound",
            ["RWO,ROX,RWX", "Delete", "Bound", "team/disk", "fast", "<unset>", ""],
            {"phase": "Bound"},
            persistentVolumeReclaimPolicy="Delete",
            accessModes=["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"],
            storageClassName="fast",
            **bound,
        ),
        volume(
            "failed",
            ["RWO", "Retain", "Failed", "", "old", "<unset>", "NoSpace"],
            {"phase": "Failed", "reason": "NoSpace"},
            {"annotations": OLD_CLASS},
            storageClassName="fast",
        ),
        volume(
            "going",
            ["RWOP", "Retain", "Terminating", "", "", "<unset>", ""],
            {"phase": "Available"},
            {"deleting": True},
            accessModes=["ReadWriteOncePod"],
        ),
    ]


def claims(now: float) -> list[Situation]:
    def of(name: str, cells: list[str], status: dict[str, Any], **parts: Any) -> Situation:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeMode": "Block",
            **parts.get("spec", {}),
        }
        metadata = named(name, **parts.get("metadata", {}))
        obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }
        return Situation(name, obj, [name, *cells, ANY_AGE, "Block"])

    bound = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    return [
        of("pending", ["Pending", "", "", "", "", "<unset>"], {"phase": "Pending"}),
        of(
            "bound",
            ["Bound", "disk-1", "2Gi", "RWO", "fast", "<unset>"],
            bound,
            spec={"volumeName": "disk-1", "storageClassName": "fast"},
        ),
        of(
            "promised",
            ["Pending", "disk-2", "0", "", "old", "<unset>"],
            {"phase": "Pending"},
            spec={"volumeName": "disk-2"},
            metadata={"annotations": OLD_CLASS},
        ),
        of(
            "going",
            ["Terminating", "", "", "", "", "<unset>"],
            {"phase": "Pending"},
            metadata={"deleting": True},
        ),
    ]


@pytest.mark.parametrize("case", volumes(NOW), ids=lambda case: case.name)
def test_volume_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert with_any_age(PERSISTENT_VOLUMES.cells(case.obj, NOW), PERSISTENT_VOLUMES.columns) == case.cells


@pytest.mark.parametrize("case", claims(NOW), ids=lambda case: case.name)
def test_claim_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    cells = PERSISTENT_VOLUME_CLAIMS.cells(case.obj, NOW)
    assert with_any_age(cells, PERSISTENT_VOLUME_CLAIMS.columns) == case.cells
