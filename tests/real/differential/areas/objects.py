"""The objects that the table sends, as small as the real server accepts them."""

from __future__ import annotations

from typing import Any

CORE = "/api/v1/namespaces/${ns}"
PODS = CORE + "/pods"
APPS = "/apis/apps/v1/namespaces/${ns}"
BATCH = "/apis/batch/v1/namespaces/${ns}"
POLICY = "/apis/policy/v1/namespaces/${ns}"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/${ns}/events"
NODES = "/api/v1/nodes"

Object = dict[str, Any]


def pod(name: str | None = None, *, metadata: Object | None = None, **spec: Any) -> Object:
    containers = spec.pop("containers", [{"name": "main", "image": "registry.example/app:1"}])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**({"name": name} if name else {}), **(metadata or {})},
        "spec": {"containers": containers, **spec},
    }


def container(name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "registry.example/app:1", **more}


def template(labels: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"labels": labels if labels is not None else {"app": "web"}},
        "spec": {"containers": [container()], **spec},
    }


def of(api_version: str, kind: str, name: str, *, metadata: Object | None = None, **fields: Any) -> Object:
    """Any object: its fields stand beside the metadata."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **fields}


def config_map(name: str, data: Object | None = None, *, metadata: Object | None = None) -> Object:
    return of("v1", "ConfigMap", name, metadata=metadata, data=data or {"key": "value"})


def workload(kind: str, name: str, **spec: Any) -> Object:
    """One of the apps kinds, with a selector that fits its template."""
    fields = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return of("apps/v1", kind, name, spec=fields)


def bind(pod_name: str, node: str) -> Object:
    return of("v1", "Binding", pod_name, target={"apiVersion": "v1", "kind": "Node", "name": node})


def delete_options(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **fields}


def eviction(name: str, **fields: Any) -> Object:
    return of("policy/v1", "Eviction", name, **fields)


def budget(name: str, labels: Object | None = None, **spec: Any) -> Object:
    selector = {"matchLabels": labels} if labels is not None else {}
    limits = spec or {"minAvailable": 1}
    return of("policy/v1", "PodDisruptionBudget", name, spec={"selector": selector, **limits})


def phase(value: str, **more: Any) -> Object:
    """A merge patch for the status subresource of a pod."""
    return {"status": {"phase": value, **more}}


READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False"}
