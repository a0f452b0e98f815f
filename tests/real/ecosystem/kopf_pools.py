"""A kopf operator of a custom resource, as kopf's own examples are written; `test_kopf.py` runs it with `kopf run`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import kopf
import msgspec
from kubernetes import client, config

from podlife.api.crd import CustomResource
from podlife.api.views import Metadata


class PoolSpec(msgspec.Struct):
    size: Annotated[int, msgspec.Meta(ge=0, le=9)] = 1
    hold: bool = False


@CustomResource("kopf.example.com", "v1", "pools", short_names=("kp",), columns={"Size": ".spec.size"})
class Pool(msgspec.Struct):
    metadata: Metadata
    spec: PoolSpec = msgspec.field(default_factory=PoolSpec)
    # kopf keeps the results and the progress of handlers in it.
    status: dict[str, Any] = {}


def note(name: str, namespace: str) -> None:
    """A ConfigMap says what happened even if the pool is gone."""
    make(namespace, {"metadata": {"name": name}})


def make(namespace: str, config_map: dict[str, Any]) -> None:
    config.load_kube_config()
    try:
        client.CoreV1Api().create_namespaced_config_map(namespace, config_map)
    except client.ApiException as error:
        # kopf may call a handler again that has done its work.
        if error.status != 409:
            raise


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.persistence.finalizer = "kopf.example.com/finalizer"


@kopf.on.create("pools")
def create(
    spec: kopf.Spec, name: str, namespace: str, retry: int, body: kopf.Body, **_: Any
) -> dict[str, Any]:
    if retry < 2:
        raise kopf.TemporaryError("not yet", delay=0.1)
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-child"}}
    kopf.adopt(child, owner=body)
    make(namespace, child)
    return {"size": spec["size"], "retries": retry}


@kopf.on.update("pools", field="spec.size")
def resize(old: int, new: int, patch: kopf.Patch, **_: Any) -> None:
    patch.status["resized"] = f"{old} to {new}"


@kopf.on.resume("pools")
def resume(patch: kopf.Patch, status: kopf.Status, **_: Any) -> None:
    patch.status["resumed"] = status.get("resumed", 0) + 1


@kopf.on.delete("pools")
def delete(name: str, namespace: str, spec: kopf.Spec, **_: Any) -> None:
    if spec["hold"]:
        raise kopf.TemporaryError("held", delay=0.2)
    note(f"{name}-deleted", namespace)


@kopf.timer("pools", interval=0.3)
def tick(patch: kopf.Patch, status: kopf.Status, **_: Any) -> None:
    if status.get("ticks", 0) < 3:
        patch.status["ticks"] = status.get("ticks", 0) + 1


# Without a backoff the daemon is cancelled at once.
@kopf.daemon("pools", cancellation_backoff=60, cancellation_timeout=5)
async def watch_over(
    name: str, namespace: str, stopped: kopf.DaemonStopped, patch: kopf.Patch, **_: Any
) -> None:
    await asyncio.to_thread(note, f"{name}-daemon-started", namespace)
    await stopped.wait()
    await asyncio.to_thread(note, f"{name}-daemon-stopped", namespace)
