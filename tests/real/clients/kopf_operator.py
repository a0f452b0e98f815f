"""An operator such as users write with kopf; `test_kopf.py` runs it with `kopf run`."""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import client, config

WATCHED = {"operated": "yes"}


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = True


@kopf.on.create("v1", "configmaps", labels=WATCHED)
def create(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    kopf.info(body, reason="Noticed", message="a new configmap")
    patch.metadata.annotations["example.com/created"] = "yes"


@kopf.on.update("v1", "configmaps", labels=WATCHED, field="data.k")
def update(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.annotations["example.com/changed"] = f"{old} to {new}"


@kopf.on.delete("v1", "configmaps", labels=WATCHED)
def delete(name: str, namespace: str, **_: Any) -> None:
    config.load_kube_config()
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"{name}-was-here"))
    client.CoreV1Api().create_namespaced_config_map(namespace, body)


@kopf.on.create("v1", "pods", labels=WATCHED)
def adopt(patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.labels["adopted"] = "yes"
    patch.status["phase"] = "Running"


@kopf.on.field("v1", "pods", labels=WATCHED, field="status.phase")
def follow(new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.metadata.annotations["example.com/phase"] = str(new)
