"""Classes of volumes, CSI drivers and their capacity, attachments, and what admission does to claims."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import of
from tests.real.differential.steps import Area

Object = dict[str, Any]

_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_GROUP = "storage.k8s.io/v1"

STORAGE = Area("storage")
_CLASSES, _DRIVERS, _ATTACHMENTS, _ATTRIBUTES = (
    f"/apis/{_GROUP}/{plural}"
    for plural in ("storageclasses", "csidrivers", "volumeattachments", "volumeattributesclasses")
)
_CAPACITIES = f"/apis/{_GROUP}/namespaces/${{ns}}/csistoragecapacities"
_CLAIMS = "/api/v1/namespaces/${ns}/persistentvolumeclaims"


def _class(name: str, provisioner: str = "example.com/disk", **fields: Any) -> Object:
    return of(_GROUP, "StorageClass", name, provisioner=provisioner, **fields)


def _term(*expressions: Object) -> Object:
    return {"matchLabelExpressions": list(expressions)}


_ZONE = {"key": "example.com/zone", "values": ["a", "b"]}
STORAGE.post("class", _CLASSES, _class("diff-plain"))
STORAGE.post(
    "class-full",
    _CLASSES,
    _class(
        "diff-full",
        parameters={"type": "ssd"},
        reclaimPolicy="Retain",
        mountOptions=["ro"],
        allowVolumeExpansion=True,
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[_term(_ZONE)],
    ),
)
STORAGE.patch("class-label", "merge", f"{_CLASSES}/diff-plain", {"metadata": {"labels": {"a": "b"}}})
STORAGE.patch("class-expansion", "merge", f"{_CLASSES}/diff-plain", {"allowVolumeExpansion": True})
for _field, _value in {
    "provisioner": "example.com/other",
    "parameters": {"a": "b"},
    "reclaimPolicy": "Retain",
    "volumeBindingMode": "WaitForFirstConsumer",
}.items():
    STORAGE.patch(f"class-change-{_field}", "merge", f"{_CLASSES}/diff-plain", {_field: _value}, 422)
_refused_classes: dict[str, Object] = {
    "nothing": {"provisioner": ""},
    "bad-name": {"provisioner": "a b/c d"},
    "policy": {"reclaimPolicy": "Recycle"},
    "mode": {"volumeBindingMode": "Later"},
    "parameters": {"parameters": {"": "x"}},
    "topologies": {"allowedTopologies": [_term(), _term(_ZONE), _term(_ZONE)]},
    "topology": {
        "allowedTopologies": [_term({"key": "a b", "values": []}, _ZONE, {**_ZONE, "values": ["x", "x"]})]
    },
}
for _name, _fields in _refused_classes.items():
    STORAGE.post(f"class-{_name}", _CLASSES, _class("diff-refused", **_fields), 422, unordered=True)
STORAGE.get("class-rows", f"{_CLASSES}?fieldSelector=metadata.name%3Ddiff-full", headers=_TABLE)


def _claim(name: str, **spec: Any) -> Object:
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return of("v1", "PersistentVolumeClaim", name, spec=given | spec)


def _larger(size: str) -> Object:
    return {"spec": {"resources": {"requests": {"storage": size}}}}


_DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
STORAGE.post(
    "class-default",
    _CLASSES,
    of(_GROUP, "StorageClass", "diff-default", metadata=_DEFAULT, provisioner="x/y"),
)
STORAGE.get("class-default-rows", f"{_CLASSES}?fieldSelector=metadata.name%3Ddiff-default", headers=_TABLE)
STORAGE.delete("class-default-delete", f"{_CLASSES}/diff-default")
STORAGE.post("claim-of-a-class", _CLAIMS, _claim("of-a-class", storageClassName="diff-plain"))
STORAGE.post("claim-of-no-class", _CLAIMS, _claim("of-no-class", storageClassName=""))
STORAGE.patch("claim-grows-unbound", "merge", f"{_CLAIMS}/of-a-class", _larger("2Gi"), 422)
for _name in ("of-a-class", "of-no-class"):
    STORAGE.patch(
        f"claim-{_name}-bound", "merge", f"{_CLAIMS}/{_name}/status", {"status": {"phase": "Bound"}}
    )
STORAGE.patch("claim-grows", "merge", f"{_CLAIMS}/of-a-class", _larger("2Gi"))
STORAGE.patch("claim-grows-without-a-class", "merge", f"{_CLAIMS}/of-no-class", _larger("2Gi"), 403)
for _name in ("plain", "full"):
    STORAGE.delete(f"class-{_name}-delete", f"{_CLASSES}/diff-{_name}")


def _driver(name: str, **spec: Any) -> Object:
    return of(_GROUP, "CSIDriver", name, spec=spec)


_TOKEN = {"audience": "a", "expirationSeconds": 600}
STORAGE.post("driver", _DRIVERS, _driver("diff.example.com"))
STORAGE.post(
    "driver-full",
    _DRIVERS,
    _driver(
        "diff-full.example.com",
        attachRequired=False,
        podInfoOnMount=True,
        storageCapacity=True,
        fsGroupPolicy="File",
        volumeLifecycleModes=["Ephemeral", "Persistent"],
        tokenRequests=[_TOKEN],
        requiresRepublish=True,
        seLinuxMount=True,
        nodeAllocatableUpdatePeriodSeconds=10,
        serviceAccountTokenInSecrets=True,
        preventPodSchedulingIfMissing=True,
    ),
)
STORAGE.post("driver-warned", _DRIVERS, _driver("diff-warned.example.com", tokenRequests=[_TOKEN]))
STORAGE.patch("driver-change", "merge", f"{_DRIVERS}/diff.example.com", {"spec": {"podInfoOnMount": True}})
STORAGE.patch("driver-same", "merge", f"{_DRIVERS}/diff.example.com", {"metadata": {"labels": {"a": "b"}}})
STORAGE.patch(
    "driver-immutable",
    "merge",
    f"{_DRIVERS}/diff.example.com",
    {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}},
    422,
)
_refused_drivers: dict[str, Object] = {
    "policy": {"fsGroupPolicy": "Maybe"},
    "modes": {"volumeLifecycleModes": ["Never"]},
    "tokens": {"tokenRequests": [_TOKEN, _TOKEN, {"audience": "b", "expirationSeconds": 5}]},
    "long-token": {"tokenRequests": [{"audience": "b", "expirationSeconds": 4294967297}]},
    "period": {"nodeAllocatableUpdatePeriodSeconds": 9},
    "no-tokens": {"serviceAccountTokenInSecrets": False},
}
for _name, _fields in _refused_drivers.items():
    STORAGE.post(f"driver-{_name}", _DRIVERS, _driver("diff-refused", **_fields), 422)
STORAGE.get("driver-rows", f"{_DRIVERS}?fieldSelector=metadata.name%3Ddiff-full.example.com", headers=_TABLE)
for _name in ("diff", "diff-full", "diff-warned"):
    STORAGE.delete(f"driver-{_name}-delete", f"{_DRIVERS}/{_name}.example.com")


def _capacity(name: str, **fields: Any) -> Object:
    return of(_GROUP, "CSIStorageCapacity", name, **{"storageClassName": "fast"} | fields)


STORAGE.post("capacity", _CAPACITIES, _capacity("plain"))
STORAGE.post(
    "capacity-full",
    _CAPACITIES,
    _capacity("full", nodeTopology={"matchLabels": {"a": "b"}}, capacity="1024Mi", maximumVolumeSize="0.5Gi"),
)
STORAGE.patch("capacity-change", "merge", f"{_CAPACITIES}/full", {"capacity": "3Gi"})
STORAGE.patch("capacity-class", "merge", f"{_CAPACITIES}/full", {"storageClassName": "slow"}, 422)
STORAGE.post("capacity-negative", _CAPACITIES, _capacity("refused", capacity="-1"), 422)
STORAGE.post("capacity-no-class", _CAPACITIES, _capacity("refused", storageClassName=""), 422)
STORAGE.get("capacity-rows", f"{_CAPACITIES}?fieldSelector=metadata.name%3Dfull", headers=_TABLE)
STORAGE.delete("capacity-delete", f"{_CAPACITIES}/full")


def _attachment(name: str, attacher: str = "csi.example.com", **spec: Any) -> Object:
    given = {"attacher": attacher, "nodeName": "n1", "source": {"persistentVolumeName": "v1"}}
    return of(_GROUP, "VolumeAttachment", name, spec=given | spec)


_INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "csi.example.com", "volumeHandle": "h"}}
_ATTACHED = f"{_ATTACHMENTS}/diff-plain"
STORAGE.post("attachment", _ATTACHMENTS, _attachment("diff-plain"))
STORAGE.post(
    "attachment-inline", _ATTACHMENTS, _attachment("diff-inline", source={"inlineVolumeSpec": _INLINE})
)
STORAGE.patch("attachment-change", "merge", _ATTACHED, {"spec": {"nodeName": "n2"}}, 422)
STORAGE.patch("attachment-status", "merge", f"{_ATTACHED}/status", {"status": {"attached": True}})
STORAGE.patch(
    "attachment-error",
    "merge",
    f"{_ATTACHED}/status",
    {"status": {"attachError": {"time": "2030-01-01T00:00:00Z", "message": "no", "errorCode": -1}}},
    422,
)
STORAGE.patch(
    "attachment-long-error",
    "merge",
    f"{_ATTACHED}/status",
    {"status": {"detachError": {"time": "2030-01-01T00:00:00Z", "message": "x" * 1025}}},
    422,
)
_refused_attachments: dict[str, Object] = {
    "no-attacher": {"attacher": ""},
    "bad-attacher": {"attacher": "A b"},
    "no-node": {"nodeName": ""},
    "no-source": {"source": {}},
    "empty-source": {"source": {"persistentVolumeName": ""}},
    "bad-source": {"source": {"persistentVolumeName": "A b"}},
    "two-sources": {"source": {"persistentVolumeName": "v1", "inlineVolumeSpec": _INLINE}},
    "bare-inline": {"source": {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"]}}},
}
for _name, _fields in _refused_attachments.items():
    STORAGE.post(
        f"attachment-{_name}", _ATTACHMENTS, _attachment("diff-refused", **_fields), 422, unordered=True
    )
STORAGE.get("attachment-rows", f"{_ATTACHMENTS}?fieldSelector=metadata.name%3Ddiff-plain", headers=_TABLE)
for _name in ("plain", "inline"):
    STORAGE.delete(f"attachment-{_name}-delete", f"{_ATTACHMENTS}/diff-{_name}")


def _attributes(name: str, **fields: Any) -> Object:
    given: Object = {"driverName": "csi.example.com", "parameters": {"iops": "9"}}
    return of(_GROUP, "VolumeAttributesClass", name, **given | fields)


STORAGE.post("attributes", _ATTRIBUTES, _attributes("diff-gold"))
STORAGE.patch(
    "attributes-change",
    "merge",
    f"{_ATTRIBUTES}/diff-gold",
    {"driverName": "other.example.com", "parameters": {"iops": "10"}},
    422,
)
STORAGE.post("attributes-no-driver", _ATTRIBUTES, _attributes("diff-refused", driverName=""), 422)
STORAGE.post("attributes-no-parameters", _ATTRIBUTES, _attributes("diff-refused", parameters={}), 422)
STORAGE.get("attributes-rows", f"{_ATTRIBUTES}?fieldSelector=metadata.name%3Ddiff-gold", headers=_TABLE)
STORAGE.delete("attributes-delete", f"{_ATTRIBUTES}/diff-gold")
