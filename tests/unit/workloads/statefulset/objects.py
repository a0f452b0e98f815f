"""StatefulSets and their pods and claims, as a controller's caches hold them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from podlife.api.codec import Object, format_time
from podlife.client import STATEFUL_SETS
from podlife.podcontrol import owner_of
from podlife.workloads.statefulset.identity import identity_labels, pod_name, volumes
from podlife.workloads.statefulset.plan import StatefulSetState, TemplateRevision
from podlife.workloads.statefulset.views import StatefulSet, VolumeClaim
from podlife.workloads.views import WorkloadPod
from tests.kit import objects

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SET_UID = "uid-of-set"
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "new"}]},
}
OLD_TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "old"}]},
}
OLD, NEW = TemplateRevision("web-old", OLD_TEMPLATE), TemplateRevision("web-new", TEMPLATE)
DATA = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def stateful_set(
    replicas: int = 3, *, status: Mapping[str, Any] | None = None, going: bool = False, **spec: Any
) -> StatefulSet:
    metadata: dict[str, Any] = {"name": "web", "namespace": "default", "uid": SET_UID, "generation": 1}
    if going:
        metadata["deletionTimestamp"] = format_time(NOW)
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
        "serviceName": "service",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        **spec,
    }
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": dict(status or {})}, StatefulSet)


def pod(
    of: StatefulSet,
    ordinal: int,
    *,
    phase: str = "Running",
    ready: bool = True,
    ready_for_seconds: float = 3600,
    going: bool = False,
    revision: str = NEW.name,
    labels: Mapping[str, str] | None = None,
    uid: str = "",
    **spec: Any,
) -> WorkloadPod:
    """Running and ready, with all that makes it one of the set, unless said otherwise."""
    name = pod_name(of.metadata.name, ordinal)
    own = {"app": "web", "controller-revision-hash": revision, **identity_labels(name, ordinal)}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-of-{name}",
        "labels": dict(own if labels is None else labels),
    }
    if going:
        metadata["deletionTimestamp"] = format_time(NOW)
    is_ready, since = ready and phase == "Running", NOW - timedelta(seconds=ready_for_seconds)
    status = {"phase": phase, "conditions": [objects.condition("Ready", str(is_ready), since)]}
    spec = {"volumes": volumes(of, ordinal), **spec}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, WorkloadPod)


def reference(kind: str, name: str, uid: str, *, controller: bool | None = True) -> dict[str, Any]:
    version = {"StatefulSet": "apps/v1"}.get(kind, "v1")
    return {**objects.owner(kind, name, api_version=version, uid=uid), "controller": controller}


def claim(name: str, *references: Mapping[str, Any], going: bool = False) -> VolumeClaim:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "ownerReferences": list(references),
    }
    if going:
        metadata["deletionTimestamp"] = format_time(NOW)
    return msgspec.convert({"metadata": metadata}, VolumeClaim)


def state(
    of: StatefulSet,
    *pods: WorkloadPod,
    claims: tuple[VolumeClaim, ...] = (),
    current: TemplateRevision = NEW,
    update: TemplateRevision = NEW,
) -> StatefulSetState:
    known = {each.metadata.name: each for each in claims}
    return StatefulSetState(of, owner_of(of, STATEFUL_SETS), pods, current, update, known.get, NOW)
