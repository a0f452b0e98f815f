"""Small objects of every kind that the clients handle, as plain dictionaries."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

READY: Object = {
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            for kind in ("ContainersReady", "Ready")
        ],
    }
}
"""What a node's agent says of a pod that runs and is ready."""


def _object(
    api_version: str, kind: str, name: str, labels: dict[str, str] | None = None, **rest: Any
) -> Object:
    metadata: Object = {"name": name}
    if labels is not None:
        metadata["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _template(app: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "registry.example/main:1"}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def pod(name: str, app: str = "web", **spec: Any) -> Object:
    return _object("v1", "Pod", name, {"app": app}, spec=_template(app, **spec)["spec"])


def node(name: str, **spec: Any) -> Object:
    return _object("v1", "Node", name, {"kubernetes.io/hostname": name}, spec=spec)


def config_map(name: str, **data: str) -> Object:
    return _object("v1", "ConfigMap", name, data=data)


def service(name: str, app: str = "web", **spec: Any) -> Object:
    ports = [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]
    return _object("v1", "Service", name, spec={"selector": {"app": app}, "ports": ports, **spec})


def _controller(kind: str, name: str, spec: Object) -> Object:
    selector = {"matchLabels": {"app": name}}
    return _object(
        "apps/v1", kind, name, {"app": name}, spec={"selector": selector, "template": _template(name), **spec}
    )


def deployment(name: str, **spec: Any) -> Object:
    return _controller("Deployment", name, spec)


def replica_set(name: str, **spec: Any) -> Object:
    return _controller("ReplicaSet", name, spec)


def stateful_set(name: str, **spec: Any) -> Object:
    return _controller("StatefulSet", name, {"serviceName": name, **spec})


def daemon_set(name: str, **spec: Any) -> Object:
    return _controller("DaemonSet", name, spec)


def job(name: str, **spec: Any) -> Object:
    template = _template(name, restartPolicy="Never")
    return _object("batch/v1", "Job", name, spec={"template": template, **spec})


def cron_job(name: str, **spec: Any) -> Object:
    return _object(
        "batch/v1",
        "CronJob",
        name,
        spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": job("x")["spec"]}, **spec},
    )


def budget(name: str, app: str = "web", **spec: Any) -> Object:
    return _object(
        "policy/v1", "PodDisruptionBudget", name, spec={"selector": {"matchLabels": {"app": app}}, **spec}
    )


def lease(name: str, holder: str) -> Object:
    return _object(
        "coordination.k8s.io/v1", "Lease", name, spec={"holderIdentity": holder, "leaseDurationSeconds": 15}
    )
