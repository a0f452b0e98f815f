"""Small objects for scenarios, as plain dictionaries."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def template(name: str, image: str = "registry.example/main:1", **spec: Any) -> Object:
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def replica_set(name: str, replicas: int, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": replicas, "selector": selector, "template": template(name), **spec},
    }


def labelled_pod(name: str, app: str = "web", **metadata: Any) -> Object:
    """A pod that nobody owns, unless the metadata says so."""
    made = template(app)
    return {"metadata": {"name": name, **made["metadata"], **metadata}, "spec": made["spec"]}
