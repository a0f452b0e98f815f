"""Pods get their nodes on the embedded server, under virtual time; also where it refuses, or its answer is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.client import EVENTS, NODES, PODS, Client, DeleteOptions, PatchType
from podlife.controller import ControlPlane
from podlife.errors import UnreachableError
from podlife.scheduler import Scheduler
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start
from tests.unit.scheduler.objects import node_object, pod_object
from tests.workloads.runs import at_work

Object = dict[str, Any]


@asynccontextmanager
async def scheduling(client: Client, **options: Any) -> AsyncIterator[Scheduler]:
    plane = ControlPlane(client, clock=LoopClock())
    scheduler = Scheduler(plane, **options)
    plane.add(scheduler)
    async with at_work(plane.run):
        yield scheduler


async def add_node(client: Client, name: str, **changes: Any) -> None:
    made = node_object(name, **changes)
    await client.create(NODES, made)
    await client.patch(NODES, name, {"status": made["status"]}, subresource="status")


async def add_pod(client: Client, name: str, **changes: Any) -> None:
    made = pod_object(name, **changes)
    del made["metadata"]["uid"]
    await client.create(PODS, made)


async def get(client: Client, name: str) -> Object:
    found: Object = await client.get(PODS, name, "default")
    return found


async def condition(client: Client, name: str) -> Object:
    conditions = (await get(client, name))["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


async def where(client: Client) -> Counter[str]:
    page = await client.list(PODS, "default")
    return Counter(each["spec"].get("nodeName", "") for each in page.items)


@virtual_time
async def test_pods_are_bound_spread_and_told_of() -> None:
    client = connect(await start())
    for name in ("a", "b", "c"):
        await add_node(client, name)
    async with scheduling(client):
        for number in range(9):
            await add_pod(client, f"p{number}", owner="web")
        await asyncio.sleep(1)
        assert await where(client) == {"a": 3, "b": 3, "c": 3}
        assert (await condition(client, "p0"))["status"] == "True"
        await asyncio.sleep(5)
    events = (await client.list(EVENTS, "default")).items
    assert {each["reason"] for each in events} == {"Scheduled"}
    assert "Successfully assigned default/p0 to " in " ".join(each["message"] for each in events)


@virtual_time
async def test_a_pod_with_resource_claims_waits_and_says_why() -> None:
    client = connect(await start())
    await add_node(client, "a")
    async with scheduling(client):
        await add_pod(client, "p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
        await asyncio.sleep(1)
        assert await where(client) == {"": 1}
        why = "this scheduler does not allocate devices for spec.resourceClaims"
        message = (await condition(client, "p"))["message"]
        assert message.startswith(f"0/1 nodes are available: {why}. ")


@virtual_time
async def test_a_pod_without_room_says_why_and_goes_when_a_node_comes() -> None:
    client = connect(await start())
    await add_node(client, "a", allocatable={"cpu": "1"})
    async with scheduling(client):
        await add_pod(client, "p", cpu="2")
        await asyncio.sleep(1)
        told = await condition(client, "p")
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        others = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        assert told["message"] == f"0/1 nodes are available: 1 Insufficient cpu. {others}"
        await add_node(client, "b")
        await asyncio.sleep(2)
        assert (await get(client, "p"))["spec"]["nodeName"] == "b"
    events = (await client.list(EVENTS, "default")).items
    assert [each["type"] for each in events if each["reason"] == "FailedScheduling"] == ["Warning"]


@virtual_time
async def test_room_that_a_pod_leaves_is_given_to_the_one_that_waits() -> None:
    client = connect(await start())
    await add_node(client, "a", allocatable={"cpu": "2"})
    async with scheduling(client):
        await add_pod(client, "first", cpu="2")
        await asyncio.sleep(1)
        await add_pod(client, "second", cpu="2")
        await asyncio.sleep(1)
        assert "nodeName" not in (await get(client, "second"))["spec"]
        await client.delete(PODS, "first", "default", options=DeleteOptions(grace_period_seconds=0))
        await asyncio.sleep(3)
        assert (await get(client, "second"))["spec"]["nodeName"] == "a"


@virtual_time
async def test_gates_other_schedulers_and_pods_on_their_way_out_are_left_alone() -> None:
    client = connect(await start())
    await add_node(client, "a")
    async with scheduling(client):
        await add_pod(client, "gated", schedulingGates=[{"name": "example.com/wait"}])
        await add_pod(client, "theirs", schedulerName="another")
        await asyncio.sleep(2)
        assert (await condition(client, "gated"))["reason"] == "SchedulingGated"
        assert await where(client) == {"": 2}
        await client.patch(PODS, "gated", {"spec": {"schedulingGates": []}}, "default")
        await asyncio.sleep(2)
        assert (await get(client, "gated"))["spec"]["nodeName"] == "a"
    async with scheduling(client, scheduler_name="another"):
        await asyncio.sleep(1)
        assert (await get(client, "theirs"))["spec"]["nodeName"] == "a"


@virtual_time
async def test_a_binding_whose_answer_is_lost_gives_no_place_twice() -> None:
    handler = await start()
    lost: list[str] = []

    async def loses_answers(request: Request, to_server: Handler) -> Response:
        answer = await to_server(request)
        if request.path.endswith("/binding") and len(lost) < 3:
            lost.append(request.path)
            raise UnreachableError("the answer was lost")
        return answer

    await add_node(connect(handler), "a", allocatable={"pods": "5"})
    client = connect(handler, loses_answers)
    async with scheduling(client):
        for number in range(8):
            await add_pod(client, f"p{number}")
        await asyncio.sleep(60)
        assert await where(client) == {"a": 5, "": 3}
    assert len(lost) == 3


@virtual_time
async def test_a_binding_that_is_refused_is_tried_again() -> None:
    handler = await start()
    refused: list[float] = []

    async def refuses(request: Request, to_server: Handler) -> Response:
        if request.path.endswith("/binding") and len(refused) < 3:
            refused.append(asyncio.get_running_loop().time())
            return refusal(403, "Forbidden")
        return await to_server(request)

    client = connect(handler, refuses)
    await add_node(client, "a")
    async with scheduling(client):
        await add_pod(client, "p")
        await asyncio.sleep(30)
        assert (await get(client, "p"))["spec"]["nodeName"] == "a"
    assert len(refused) == 3
    assert refused[-1] - refused[0] >= 2


@virtual_time
async def test_a_scheduler_that_starts_again_counts_what_the_last_one_bound() -> None:
    client = connect(await start())
    await add_node(client, "a", allocatable={"cpu": "4"})
    async with scheduling(client):
        for number in range(3):
            await add_pod(client, f"p{number}", cpu="1")
        await asyncio.sleep(1)
    async with scheduling(client):
        for number in range(3, 6):
            await add_pod(client, f"p{number}", cpu="1")
        await asyncio.sleep(5)
        assert await where(client) == {"a": 4, "": 2}


@virtual_time
async def test_a_pod_that_becomes_smaller_makes_room_when_its_node_has_resized_it() -> None:
    client = connect(await start())
    await add_node(client, "a", allocatable={"cpu": "2"})

    async def report(cpu: str) -> None:
        main = (await get(client, "large"))["spec"]["containers"][0]["name"]
        shown = {"name": main, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
        shown |= {"image": "x", "imageID": "", "ready": True, "restartCount": 0}
        status = {"containerStatuses": [shown]}
        await client.patch(PODS, "large", {"status": status}, "default", subresource="status")
        await asyncio.sleep(3)

    async with scheduling(client):
        await add_pod(client, "large", cpu="2")
        await asyncio.sleep(1)
        await report("2")
        await add_pod(client, "small", cpu="1")
        await asyncio.sleep(1)
        change = [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "1"}]
        await client.patch(PODS, "large", change, "default", type=PatchType.JSON, subresource="resize")
        await asyncio.sleep(3)
        assert "nodeName" not in (await get(client, "small"))["spec"]
        await report("1")
        assert (await get(client, "small"))["spec"]["nodeName"] == "a"
