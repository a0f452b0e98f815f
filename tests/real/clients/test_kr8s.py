"""kr8s, unmodified, through its own loading of the kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import kr8s
import pytest
from kr8s.asyncio.objects import ConfigMap, Deployment, Job, Pod, objects_from_files

from tests.kit.real_parts import Server
from tests.real.clients import objects
from tests.real.clients.pair import manifest

# kr8s warns of every Kubernetes newer than itself.
pytestmark = pytest.mark.filterwarnings("ignore:Kubernetes version .* is not supported")


@pytest.fixture
async def api(podlife_server: Server, namespace: str) -> AsyncIterator[kr8s.asyncio.Api]:
    api = await kr8s.asyncio.api(kubeconfig=str(podlife_server.kubeconfig), namespace=namespace)
    yield api
    # kr8s keeps its connections for the life of the process and has no way to give them back.
    assert api._session is not None
    await api._session.aclose()


async def test_a_pod_is_created_found_patched_and_deleted(api: kr8s.asyncio.Api, namespace: str) -> None:
    pod = await Pod({**objects.pod("p"), "metadata": {"name": "p", "namespace": namespace}}, api=api)
    await pod.create()
    assert await pod.exists()
    await pod.label({"x": "y"})
    await pod.annotate({"a": "b"})
    await pod.patch(objects.READY, subresource="status")
    assert await pod.ready()
    found = [item async for item in api.get("pods", namespace=namespace, label_selector={"x": "y"})]
    assert [item.name for item in found] == ["p"]
    await pod.delete()
    await pod.wait("delete", timeout=120)
    with pytest.raises(kr8s.NotFoundError):
        await Pod.get("p", namespace=namespace, api=api)


async def test_a_watch_sees_what_happens(api: kr8s.asyncio.Api, namespace: str) -> None:
    await (
        await ConfigMap(
            {**objects.config_map("a"), "metadata": {"name": "a", "namespace": namespace}}, api=api
        )
    ).create()
    seen = []
    async with asyncio.timeout(120):
        async for kind, item in api.watch("configmaps", namespace=namespace):
            seen.append((kind, item.name))
            if kind == "ADDED":
                await item.delete()
            else:
                break
    assert seen == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_deployment_is_scaled_and_a_job_kept(api: kr8s.asyncio.Api, namespace: str) -> None:
    deployment = await Deployment(
        {**objects.deployment("web"), "metadata": {"name": "web", "namespace": namespace}}, api=api
    )
    await deployment.create()
    await deployment.patch({"spec": {"replicas": 3}})
    await deployment.refresh()
    assert deployment.replicas == 3
    job = await Job({**objects.job("once"), "metadata": {"name": "once", "namespace": namespace}}, api=api)
    await job.create()
    assert await job.exists()
    await job.delete(propagation_policy="Background")
    assert not await job.exists()


async def test_pages_versions_and_resources_are_read(
    api: kr8s.asyncio.Api, namespace: str, tmp_path: Path
) -> None:
    path = tmp_path / "many.yaml"
    many = [objects.config_map(f"m-{number:03}") for number in range(120)]
    path.write_text(manifest(*many))
    for item in await objects_from_files(str(path), api=api):
        item.metadata["namespace"] = namespace
        await item.create()
    # kr8s reads in pages of a hundred.
    assert len([item async for item in api.get("configmaps", namespace=namespace)]) == 120
    assert (await api.version())["minor"] == "36"
    kinds = {resource["kind"] for resource in await api.api_resources()}
    assert {"Pod", "Deployment", "Lease"} <= kinds
    assert await api.whoami() == "admin"


async def test_a_refusal_is_an_error_with_its_text(api: kr8s.asyncio.Api, namespace: str) -> None:
    bad = {**objects.pod("p", restartPolicy="Sometimes"), "metadata": {"name": "p", "namespace": namespace}}
    with pytest.raises(kr8s.ServerError, match="restartPolicy") as caught:
        await (await Pod(bad, api=api)).create()
    assert caught.value.response.status_code == 422
