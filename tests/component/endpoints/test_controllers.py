"""Services get the addresses of their ready pods, as EndpointSlices and as Endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.client import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    Client,
    DeleteOptions,
    Ref,
)
from podlife.controller import ControlPlane
from podlife.endpoints import EndpointsController, EndpointSliceController
from podlife.ownergc import OwnerGarbageCollector
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start
from tests.workloads.runs import at_work

NAMESPACE = "default"
LABELS = {"app": "web"}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-06-01T00:00:00Z"}


@asynccontextmanager
async def cluster(disturb: Any = None) -> AsyncIterator[Client]:
    handler = await start()
    client = connect(handler)
    zone = {"topology.kubernetes.io/zone": "a"}
    await client.create(NODES, {"metadata": {"name": "node", "labels": zone}})
    plane = ControlPlane(connect(handler, disturb), clock=LoopClock())
    plane.add(EndpointSliceController(plane))
    plane.add(EndpointsController(plane))
    plane.add(OwnerGarbageCollector(plane))
    async with at_work(plane.run):
        await asyncio.sleep(1)
        yield client


async def create_service(client: Client, **spec: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}]}
    meta = {"name": "web", "labels": {"team": "a"}}
    made: dict[str, Any] = await client.create(SERVICES, {"metadata": meta, "spec": given | spec}, NAMESPACE)
    return made


async def create_pod(client: Client, name: str, ip: str, *, is_ready: bool = True, **spec: Any) -> None:
    ports = [{"name": "http", "containerPort": 8080}]
    containers = [{"name": "main", "image": "image", "ports": ports}]
    given: dict[str, Any] = {"nodeName": "node", "containers": containers}
    await client.create(PODS, {"metadata": {"name": name, "labels": LABELS}, "spec": given | spec}, NAMESPACE)
    await set_status(client, name, ip, is_ready=is_ready)


async def set_status(client: Client, name: str, ip: str, *, is_ready: bool, phase: str = "Running") -> None:
    condition = READY | ({} if is_ready else {"status": "False"})
    status = {"phase": phase, "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]}
    await client.patch(PODS, name, {"status": status}, NAMESPACE, subresource="status")


async def settled(client: Client, ref: Ref) -> list[dict[str, Any]]:
    await asyncio.sleep(30)
    return [dict(each) for each in (await client.list(ref, NAMESPACE)).items]


async def addresses(client: Client) -> list[tuple[str, bool]]:
    [found] = await settled(client, ENDPOINT_SLICES)
    endpoints = found["endpoints"] or []
    return [(each["addresses"][0], each["conditions"]["ready"]) for each in endpoints]


@virtual_time
async def test_a_slice_says_everything_about_the_pod_of_its_service() -> None:
    async with cluster() as client:
        service = await create_service(client, ports=[{"name": "web", "port": 80, "targetPort": "http"}])
        await asyncio.sleep(1)
        await create_pod(client, "one", "10.1.0.1")
        [found] = await settled(client, ENDPOINT_SLICES)
        uid = (await client.get(PODS, "one", NAMESPACE))["metadata"]["uid"]
        assert found["metadata"]["name"].startswith("web-")
        assert found["metadata"]["labels"] == {
            "team": "a",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        [owner] = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "Service",
            service["metadata"]["uid"],
            True,
        )
        assert found["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
        assert found["endpoints"] == [
            {
                "addresses": ["10.1.0.1"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": "one", "uid": uid},
                "nodeName": "node",
                "zone": "a",
            }
        ]
        assert found["metadata"]["annotations"] == {
            "endpoints.kubernetes.io/last-change-trigger-time": "2030-06-01T00:00:00Z"
        }


@virtual_time
async def test_a_service_without_pods_has_an_empty_slice_and_empty_endpoints() -> None:
    async with cluster() as client:
        await create_service(client)
        [found] = await settled(client, ENDPOINT_SLICES)
        assert (found["addressType"], found["endpoints"], found["ports"]) == ("IPv4", [], [])
        [endpoints] = await settled(client, ENDPOINTS)
        assert "subsets" not in endpoints
        versions = [each["metadata"]["resourceVersion"] for each in (found, endpoints)]
        again = [*await settled(client, ENDPOINT_SLICES), *await settled(client, ENDPOINTS)]
        assert [each["metadata"]["resourceVersion"] for each in again] == versions


@virtual_time
async def test_endpoints_follow_readiness_deletion_and_labels() -> None:
    async with cluster() as client:
        await create_service(client)
        await create_pod(client, "one", "10.1.0.1")
        await create_pod(client, "two", "10.1.0.2", is_ready=False)
        assert await addresses(client) == [("10.1.0.1", True), ("10.1.0.2", False)]
        [endpoints] = (await client.list(ENDPOINTS, NAMESPACE)).items
        [subset] = endpoints["subsets"]
        assert [each["ip"] for each in subset["addresses"]] == ["10.1.0.1"]
        assert [each["ip"] for each in subset["notReadyAddresses"]] == ["10.1.0.2"]

        await set_status(client, "two", "10.1.0.2", is_ready=True)
        assert await addresses(client) == [("10.1.0.1", True), ("10.1.0.2", True)]
        # Terminating: still there in the slice, not ready; gone from the older form.
        await client.delete(PODS, "two", NAMESPACE)
        assert await addresses(client) == [("10.1.0.1", True), ("10.1.0.2", False)]
        [endpoints] = (await client.list(ENDPOINTS, NAMESPACE)).items
        assert [each["ip"] for each in endpoints["subsets"][0]["addresses"]] == ["10.1.0.1"]
        await client.delete(PODS, "two", NAMESPACE, options=DeleteOptions(grace_period_seconds=0))
        assert await addresses(client) == [("10.1.0.1", True)]

        await client.patch(PODS, "one", {"metadata": {"labels": {"app": "other"}}}, NAMESPACE)
        assert await addresses(client) == []


@virtual_time
async def test_pods_that_have_ended_and_those_without_address_or_node_are_left_out() -> None:
    async with cluster() as client:
        await create_service(client)
        await create_pod(client, "ended", "10.1.0.1")
        await set_status(client, "ended", "10.1.0.1", is_ready=False, phase="Succeeded")
        await create_pod(client, "lost", "10.1.0.2", nodeName="nowhere")
        meta = {"name": "new", "labels": LABELS}
        spec = {"containers": [{"name": "main", "image": "image"}]}
        await client.create(PODS, {"metadata": meta, "spec": spec}, NAMESPACE)
        assert await addresses(client) == []
        await client.create(NODES, {"metadata": {"name": "nowhere"}})
        assert await addresses(client) == [("10.1.0.2", True)]


@virtual_time
async def test_a_service_may_publish_addresses_that_are_not_ready_and_names_of_pods() -> None:
    async with cluster() as client:
        spec = {"clusterIP": "None", "ports": [], "publishNotReadyAddresses": True}
        await create_service(client, **spec)
        await create_pod(client, "one", "10.1.0.1", is_ready=False, hostname="first", subdomain="web")
        [found] = await settled(client, ENDPOINT_SLICES)
        assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
        [endpoint] = found["endpoints"]
        assert (endpoint["hostname"], endpoint["conditions"]["ready"]) == ("first", True)
        [endpoints] = (await client.list(ENDPOINTS, NAMESPACE)).items
        assert endpoints["subsets"][0]["addresses"][0]["hostname"] == "first"
        assert "ports" not in endpoints["subsets"][0]


@virtual_time
async def test_many_pods_have_several_slices_and_few_of_them_change() -> None:
    async with cluster() as client:
        await create_service(client)
        for number in range(150):
            await create_pod(client, f"pod-{number:03}", f"10.1.1.{number}")
        found = await settled(client, ENDPOINT_SLICES)
        assert sorted(len(each["endpoints"]) for each in found) == [50, 100]
        before = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in found}
        await client.delete(PODS, "pod-000", NAMESPACE, options=DeleteOptions(grace_period_seconds=0))
        after = await settled(client, ENDPOINT_SLICES)
        changed = [
            each for each in after if before[each["metadata"]["name"]] != each["metadata"]["resourceVersion"]
        ]
        assert len(after) == 2
        assert len(changed) == 1


@virtual_time
async def test_what_another_client_changes_is_corrected() -> None:
    async with cluster() as client:
        await create_service(client)
        await create_pod(client, "one", "10.1.0.1")
        [found] = await settled(client, ENDPOINT_SLICES)
        name = found["metadata"]["name"]
        change = {"endpoints": [{"addresses": ["10.9.9.9"]}], "metadata": {"labels": {"odd": "yes"}}}
        await client.patch(ENDPOINT_SLICES, name, change, NAMESPACE)
        await client.patch(ENDPOINTS, "web", {"subsets": None}, NAMESPACE)
        assert await addresses(client) == [("10.1.0.1", True)]
        [found] = (await client.list(ENDPOINT_SLICES, NAMESPACE)).items
        assert "odd" not in found["metadata"]["labels"]
        assert (await client.get(ENDPOINTS, "web", NAMESPACE))["subsets"]
        await client.delete(ENDPOINT_SLICES, name, NAMESPACE)
        assert await addresses(client) == [("10.1.0.1", True)]


@virtual_time
async def test_endpoints_go_with_their_service_and_those_of_others_stay() -> None:
    async with cluster() as client:
        await create_service(client)
        await client.create(
            SERVICES, {"metadata": {"name": "own"}, "spec": {"ports": [{"port": 80}]}}, NAMESPACE
        )
        own = {"metadata": {"name": "own"}, "subsets": [{"addresses": [{"ip": "10.2.0.1"}]}]}
        await client.create(ENDPOINTS, own, NAMESPACE)
        await create_pod(client, "one", "10.1.0.1")
        assert len(await settled(client, ENDPOINTS)) == 2
        await client.delete(SERVICES, "web", NAMESPACE)
        assert [each["metadata"]["name"] for each in await settled(client, ENDPOINTS)] == ["own"]
        assert await settled(client, ENDPOINT_SLICES) == []


@virtual_time
async def test_a_service_that_is_created_again_has_slices_of_its_own() -> None:
    async with cluster() as client:
        await create_service(client)
        await create_pod(client, "one", "10.1.0.1")
        await settled(client, ENDPOINT_SLICES)
        await client.delete(SERVICES, "web", NAMESPACE)
        again = await create_service(client)
        [found] = await settled(client, ENDPOINT_SLICES)
        [owner] = found["metadata"]["ownerReferences"]
        assert owner["uid"] == again["metadata"]["uid"]
        assert await addresses(client) == [("10.1.0.1", True)]


@virtual_time
async def test_nothing_is_created_in_a_namespace_that_is_being_deleted() -> None:
    async with cluster() as client:
        await client.create(NAMESPACES, {"metadata": {"name": "going"}})
        service = {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}}
        await client.create(SERVICES, service, "going")
        await asyncio.sleep(1)
        await client.delete(NAMESPACES, "going")
        for ref in (ENDPOINTS, ENDPOINT_SLICES):
            for each in (await client.list(ref, "going")).items:
                await client.delete(ref, each["metadata"]["name"], "going")
        await asyncio.sleep(60)
        for ref in (ENDPOINTS, ENDPOINT_SLICES):
            assert (await client.list(ref, "going")).items == []


@virtual_time
async def test_a_write_that_fails_is_tried_again() -> None:
    refused = 0

    async def disturb(request: Request, to_server: Handler) -> Response:
        nonlocal refused
        if request.method in ("POST", "PATCH") and refused < 6:
            refused += 1
            return refusal(500, "InternalError")
        return await to_server(request)

    async with cluster(disturb) as client:
        await create_service(client)
        await create_pod(client, "one", "10.1.0.1")
        assert await addresses(client) == [("10.1.0.1", True)]
        assert refused == 6
