"""What the server creates when it starts, and the condition that it gives to FlowSchemas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import Authenticator
from podlife.apiserver.bootstrap import create_kubernetes_service, create_system_objects
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.flow_schema_status import FlowSchemaStatusController
from podlife.apiserver.storage import MemoryStore
from podlife.client import SERVICES, Client, Ref
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect
from tests.workloads.runs import at_work

_GROUP = "flowcontrol.apiserver.k8s.io"
SCHEMAS = Ref(_GROUP, "v1", "flowschemas", namespaced=False, kind="FlowSchema")
LEVELS = Ref(_GROUP, "v1", "prioritylevelconfigurations", namespaced=False, kind="PriorityLevelConfiguration")


def schema(name: str, level: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": level}}}


def level(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    }


async def started() -> ApiHandler:
    handler = assemble(MemoryStore(), clock=LoopClock(), authenticator=Authenticator())
    await create_system_objects(handler.registry)
    return handler


@asynccontextmanager
async def server() -> AsyncIterator[Client]:
    handler = await started()
    async with at_work(FlowSchemaStatusController(handler.registry).run):
        await asyncio.sleep(1)
        yield connect(handler)


async def dangling(client: Client, name: str) -> dict[str, Any]:
    conditions = (await client.get(SCHEMAS, name))["status"].get("conditions", [])
    [found] = [each for each in conditions if each["type"] == "Dangling"]
    return dict(found)


@virtual_time
async def test_the_objects_that_a_server_creates_are_found_and_not_dangling() -> None:
    async with server() as client:
        for each in (await client.list(SCHEMAS)).items:
            assert (await dangling(client, each["metadata"]["name"]))["status"] == "False"
        assert len((await client.list(LEVELS)).items) == 8


@virtual_time
async def test_a_schema_follows_its_level_as_it_comes_and_goes() -> None:
    async with server() as client:
        await client.create(SCHEMAS, schema("mine", "gold"))
        await asyncio.sleep(1)
        missing = await dangling(client, "mine")
        assert (missing["status"], missing["reason"]) == ("True", "NotFound")
        assert missing["message"].endswith('object named "gold" but there is no such object')
        await client.create(LEVELS, level("gold"))
        await asyncio.sleep(1)
        found = await dangling(client, "mine")
        assert (found["status"], found["reason"]) == ("False", "Found")
        assert found["lastTransitionTime"] != missing["lastTransitionTime"]
        await client.delete(LEVELS, "gold")
        await asyncio.sleep(1)
        assert (await dangling(client, "mine"))["status"] == "True"


@virtual_time
async def test_conditions_of_others_stay() -> None:
    async with server() as client:
        await client.create(SCHEMAS, schema("mine", "exempt"))
        await asyncio.sleep(1)
        own = {"type": "Seen", "status": "True", "reason": "x"}
        await client.patch(SCHEMAS, "mine", {"status": {"conditions": [own]}}, subresource="status")
        await asyncio.sleep(1)
        conditions = (await client.get(SCHEMAS, "mine"))["status"]["conditions"]
        assert [each["type"] for each in conditions] == ["Seen", "Dangling"]


@virtual_time
async def test_what_exists_is_left_as_it_is_at_the_next_start() -> None:
    handler = await started()
    client = connect(handler)
    await create_kubernetes_service(handler.registry, 6443)
    await client.delete(SCHEMAS, "probes")
    await client.patch(LEVELS, "system", {"spec": {"limited": {"nominalConcurrencyShares": 7}}})
    before = await client.get(SERVICES, "kubernetes", "default")
    await create_system_objects(handler.registry)
    await create_kubernetes_service(handler.registry, 7443)
    assert await client.get(SERVICES, "kubernetes", "default") == before
    assert before["spec"]["clusterIP"] == "10.96.0.1"
    assert before["spec"]["ports"] == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]
    assert (await client.get(LEVELS, "system"))["spec"]["limited"]["nominalConcurrencyShares"] == 7
    assert await client.get(SCHEMAS, "probes")
