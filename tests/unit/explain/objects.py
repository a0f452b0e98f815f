"""Pods and worlds for the pure diagnosis, as a server would give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from podlife.api.codec import format_time
from podlife.explain import ClusterSnapshot

Object = dict[str, Any]

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def ago(**length: float) -> str:
    return format_time(NOW - timedelta(**length))


def a_pod(*, spec: Object | None = None, status: Object | None = None, **metadata: Any) -> Object:
    named = {"name": "web", "namespace": "shop", "uid": "u-1", "creationTimestamp": ago(hours=1)}
    return {
        "metadata": {**named, **metadata},
        "spec": {"containers": [{"name": "main", "image": "i"}], "nodeName": "n1", **(spec or {})},
        "status": {"phase": "Running", **(status or {})},
    }


def deleted(grace: int = 30, **length: float) -> Object:
    ends = NOW - timedelta(**length) + timedelta(seconds=grace)
    return {"deletionTimestamp": format_time(ends), "deletionGracePeriodSeconds": grace}


def a_node(ready: str = "True", **spec: Any) -> Object:
    told = {"type": "Ready", "status": ready, "lastTransitionTime": ago(minutes=30)}
    return {"metadata": {"name": "n1", "uid": "n-1"}, "spec": spec, "status": {"conditions": [told]}}


def a_world(**fields: Any) -> ClusterSnapshot:
    return ClusterSnapshot(NOW, **{"nodes": {"n1": a_node()}, "claims": {}, **fields})


def an_event(reason: str, message: str = "", *, minutes: float = 5, **about: Any) -> Object:
    regarded = {"kind": "Pod", "name": "web", "uid": "u-1", **about}
    return {
        "reason": reason,
        "message": message,
        "involvedObject": regarded,
        "lastTimestamp": ago(minutes=minutes),
        "source": {"component": "somebody"},
    }
