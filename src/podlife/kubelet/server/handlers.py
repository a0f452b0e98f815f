"""`/pods`, `/runningpods`, `/healthz`, `/metrics` and `/stats/summary`."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from podlife.api.codec import Object, encode, format_time
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.runtime import ContainerState, ContainerStatus, SandboxState, SandboxStatus

from .request import HttpError, KubeletRequest, ServedNode


async def serve_pods(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    return _pod_list(node.pods.pods())


async def serve_running_pods(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    """As the runtime knows them, whatever the API server says of them."""
    containers: dict[str, list[ContainerStatus]] = {}
    for container in await node.runtime.list_containers():
        if container.state is ContainerState.RUNNING:
            containers.setdefault(container.sandbox_id, []).append(container)
    sandboxes = await node.runtime.list_sandboxes()
    running = [
        _running_pod(sandbox, containers.get(sandbox.id, []))
        for sandbox in sandboxes
        if sandbox.state is SandboxState.READY or sandbox.id in containers
    ]
    return _pod_list(running)


async def serve_health(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    if trouble := node.trouble():
        raise HttpError(500, trouble)
    return web.Response(text="ok")


async def serve_metrics(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    return web.Response(body=generate_latest(node.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def serve_summary(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    """Which pods there are and since when; how much they use is not measured, and no number is made up."""
    pods = [
        {
            "podRef": {key: pod["metadata"].get(key, "") for key in ("name", "namespace", "uid")},
            "startTime": (pod.get("status") or {}).get("startTime"),
        }
        for pod in node.pods.pods()
    ]
    return _json({"node": {"nodeName": node.name}, "pods": pods})


def _running_pod(sandbox: SandboxStatus, containers: Iterable[ContainerStatus]) -> Object:
    config = sandbox.config
    metadata = {
        "name": config.name,
        "namespace": config.namespace,
        "uid": config.pod_uid,
        "creationTimestamp": format_time(sandbox.created_at),
    }
    shown = [{"name": each.config.name, "image": each.config.image, "resources": {}} for each in containers]
    return {"metadata": metadata, "spec": {"containers": shown}, "status": {}}


def _pod_list(pods: Iterable[Pod]) -> web.Response:
    items = [dict(pod) for pod in pods]
    return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def _json(value: Object) -> web.Response:
    return web.Response(body=encode(value), content_type="application/json")
