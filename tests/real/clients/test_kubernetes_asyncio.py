"""kubernetes_asyncio, unmodified, through its own loading of the kubeconfig."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException

from tests.kit.real_parts import Server
from tests.real.clients import objects


@pytest.fixture
async def api(podlife_server: Server) -> AsyncIterator[client.ApiClient]:
    async with await config.new_client_from_config(str(podlife_server.kubeconfig)) as api:
        yield api


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


async def test_a_pod_is_created_read_patched_evicted_and_deleted(
    core: client.CoreV1Api, namespace: str
) -> None:
    await core.create_namespaced_pod(namespace, objects.pod("p", nodeName="node-x"))
    await core.patch_namespaced_pod_status("p", namespace, objects.READY)
    assert (await core.read_namespaced_pod("p", namespace)).status.phase == "Running"
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p", namespace=namespace))
    await core.create_namespaced_pod_eviction("p", namespace, eviction)
    assert (await core.read_namespaced_pod("p", namespace)).metadata.deletion_timestamp is not None
    await core.delete_namespaced_pod("p", namespace, grace_period_seconds=0)
    with pytest.raises(ApiException) as caught:
        await core.read_namespaced_pod("p", namespace)
    assert caught.value.status == 404


async def test_pages_add_up_to_the_whole_list(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(5):
        await core.create_namespaced_config_map(namespace, objects.config_map(f"m-{number}"))
    first = await core.list_namespaced_config_map(namespace, limit=3)
    rest = await core.list_namespaced_config_map(namespace, limit=3, _continue=first.metadata._continue)
    assert [item.metadata.name for item in first.items + rest.items] == [f"m-{number}" for number in range(5)]
    assert not rest.metadata._continue


async def test_a_watch_sees_what_happens(core: client.CoreV1Api, namespace: str) -> None:
    start = (await core.list_namespaced_pod(namespace)).metadata.resource_version
    await core.create_namespaced_pod(namespace, objects.pod("p"))
    await core.delete_namespaced_pod("p", namespace)
    seen = []
    async with watch.Watch() as watcher:
        async for event in watcher.stream(
            core.list_namespaced_pod, namespace, resource_version=start, timeout_seconds=120
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                break
    assert seen == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]


async def test_deployments_jobs_and_leases_are_kept(api: client.ApiClient, namespace: str) -> None:
    apps, batch, leases = client.AppsV1Api(api), client.BatchV1Api(api), client.CoordinationV1Api(api)
    await apps.create_namespaced_deployment(namespace, objects.deployment("web"))
    await apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 4}})
    assert (await apps.read_namespaced_deployment("web", namespace)).spec.replicas == 4
    await batch.create_namespaced_job(namespace, objects.job("once"))
    await batch.patch_namespaced_job_status("once", namespace, {"status": {"active": 1}})
    assert (await batch.read_namespaced_job("once", namespace)).status.active == 1
    await leases.create_namespaced_lease(namespace, objects.lease("held", "me"))
    lease = await leases.read_namespaced_lease("held", namespace)
    lease.spec.holder_identity = "you"
    await leases.replace_namespaced_lease("held", namespace, lease)
    assert (await leases.read_namespaced_lease("held", namespace)).spec.holder_identity == "you"


async def test_errors_carry_the_status_of_the_server(core: client.CoreV1Api, namespace: str) -> None:
    await core.create_namespaced_config_map(namespace, objects.config_map("a"))
    with pytest.raises(ApiException) as taken:
        await core.create_namespaced_config_map(namespace, objects.config_map("a"))
    assert taken.value.status == 409
    assert '"reason":"AlreadyExists"' in taken.value.body
    with pytest.raises(ApiException) as invalid:
        await core.create_namespaced_pod(namespace, objects.pod("Not A Name"))
    assert invalid.value.status == 422
