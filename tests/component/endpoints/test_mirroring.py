"""Endpoints that users write for a Service without a selector are mirrored as EndpointSlices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podlife.api.codec import Object
from podlife.client import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from podlife.controller import ControlPlane
from podlife.endpoints import EndpointsController, EndpointSliceController, EndpointSliceMirroringController
from podlife.testing import LoopClock, virtual_time
from tests.endpoints.scenarios import SELECTORLESS, SUBSET
from tests.endpoints.stage import LABELS, Stage, create_nodes
from tests.kit.embedded import connect, start
from tests.workloads.runs import at_work


@asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    handler = await start()
    stage = Stage(connect(handler), "default")
    await create_nodes(stage.client)
    plane = ControlPlane(connect(handler), clock=LoopClock())
    for controller in (EndpointsController, EndpointSliceController, EndpointSliceMirroringController):
        plane.add(controller(plane))
    async with at_work(plane.run):
        await asyncio.sleep(1)
        yield stage


async def settled(stage: Stage) -> list[Object]:
    await asyncio.sleep(30)
    return await stage.slices_of()


@virtual_time
async def test_a_slice_says_what_the_endpoints_say() -> None:
    async with opened() as stage:
        await stage.service(**SELECTORLESS)
        meta = {"labels": {"team": "a"}, "annotations": {"note": "copied"}}
        others = {"notReadyAddresses": [{"ip": "10.2.0.2", "hostname": "two", "nodeName": "node-a"}]}
        await stage.create(ENDPOINTS, "web", metadata=meta, subsets=[SUBSET | others])
        [found] = await settled(stage)
        assert found["metadata"]["annotations"] == {"note": "copied"}
        assert found["metadata"]["labels"] == {
            "team": "a",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        }
        [owner] = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Endpoints", "web", True)
        assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
        assert found["endpoints"] == [
            {"addresses": ["10.2.0.1"], "conditions": {"ready": True}},
            {
                "addresses": ["10.2.0.2"],
                "conditions": {"ready": False},
                "hostname": "two",
                "nodeName": "node-a",
            },
        ]


@virtual_time
async def test_nothing_is_written_while_nothing_changes_and_a_slice_is_reused() -> None:
    async with opened() as stage:
        await stage.service(**SELECTORLESS)
        await stage.create(ENDPOINTS, "web", subsets=[SUBSET])
        [first] = await settled(stage)
        assert await settled(stage) == [first]
        await stage.patch(ENDPOINTS, "web", subsets=[SUBSET | {"ports": [{"port": 9090}]}])
        [second] = await settled(stage)
        assert second["metadata"]["uid"] == first["metadata"]["uid"]
        assert [port["port"] for port in second["ports"]] == [9090]


@virtual_time
async def test_slices_go_when_the_endpoints_are_not_to_be_mirrored() -> None:
    async with opened() as stage:
        await stage.service(**SELECTORLESS)
        await stage.create(ENDPOINTS, "web", subsets=[SUBSET])
        assert len(await settled(stage)) == 1
        skip = "endpointslice.kubernetes.io/skip-mirror"
        await stage.patch(ENDPOINTS, "web", metadata={"labels": {skip: "true"}})
        assert await settled(stage) == []
        await stage.patch(ENDPOINTS, "web", metadata={"labels": {skip: None}})
        assert len(await settled(stage)) == 1
        # The Service selects pods now: its slices are those of the other controller.
        await stage.patch(SERVICES, "web", spec={"selector": LABELS})
        [found] = await settled(stage)
        assert found["metadata"]["ownerReferences"][0]["kind"] == "Service"


@virtual_time
async def test_both_forms_go_with_the_service_and_endpoints_without_one_wait_for_it() -> None:
    async with opened() as stage:
        await stage.create(ENDPOINTS, "web", subsets=[SUBSET])
        assert await settled(stage) == []
        await stage.service(**SELECTORLESS)
        assert len(await settled(stage)) == 1
        await stage.delete(SERVICES, "web")
        assert await settled(stage) == []
        assert (await stage.client.list(ENDPOINTS, "default")).items == []


@virtual_time
async def test_a_slice_that_others_change_or_delete_is_restored() -> None:
    async with opened() as stage:
        await stage.service(**SELECTORLESS)
        await stage.create(ENDPOINTS, "web", subsets=[SUBSET])
        [found] = await settled(stage)
        name = found["metadata"]["name"]
        await stage.patch(ENDPOINT_SLICES, name, endpoints=[{"addresses": ["10.9.9.9"]}])
        [corrected] = await settled(stage)
        assert corrected["endpoints"] == found["endpoints"]
        await stage.delete(ENDPOINT_SLICES, name)
        [again] = await settled(stage)
        assert again["endpoints"] == found["endpoints"]
