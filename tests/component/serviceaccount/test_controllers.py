"""What every namespace has: created, kept, corrected, and not forced upon a namespace that is going."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.apiserver.endpoints import ApiHandler
from podlife.client import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Client, Ref
from podlife.controller import ControlPlane
from podlife.serviceaccount import RootCaCertPublisher, ServiceAccountController
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start
from tests.workloads.runs import at_work

ROOT_CA = "-----BEGIN CERTIFICATE-----\n"
DESCRIPTION = "kubernetes.io/description"
BOTH = ((SERVICE_ACCOUNTS, "default"), (CONFIG_MAPS, "kube-root-ca.crt"))


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    async with controlling(await start()) as client:
        yield client


@asynccontextmanager
async def controlling(handler: ApiHandler, disturb: Any = None) -> AsyncIterator[Client]:
    plane = ControlPlane(connect(handler, disturb), clock=LoopClock())
    plane.add(ServiceAccountController(plane))
    plane.add(RootCaCertPublisher(plane, root_ca=ROOT_CA))
    async with at_work(plane.run):
        await asyncio.sleep(1)
        yield connect(handler)


async def names(client: Client, ref: Ref, namespace: str) -> list[str]:
    return [each["metadata"]["name"] for each in (await client.list(ref, namespace)).items]


@virtual_time
async def test_namespaces_of_before_and_new_ones_have_both() -> None:
    async with cluster() as client:
        await client.create(NAMESPACES, {"metadata": {"name": "fresh"}})
        await asyncio.sleep(1)
        for namespace in ("default", "kube-system", "fresh"):
            for ref, name in BOTH:
                assert await names(client, ref, namespace) == [name]
        published = await client.get(CONFIG_MAPS, "kube-root-ca.crt", "fresh")
        assert published["data"] == {"ca.crt": ROOT_CA}
        assert published["metadata"]["annotations"][DESCRIPTION].startswith("Contains a CA bundle")


@pytest.mark.parametrize(("ref", "name"), BOTH)
@virtual_time
async def test_one_that_is_deleted_comes_back(ref: Ref, name: str) -> None:
    async with cluster() as client:
        before = await client.get(ref, name, "default")
        await client.delete(ref, name, "default")
        await asyncio.sleep(1)
        assert (await client.get(ref, name, "default"))["metadata"]["uid"] != before["metadata"]["uid"]


@virtual_time
async def test_a_certificate_that_was_changed_is_corrected_and_what_else_was_added_stays() -> None:
    async with cluster() as client:
        change = {
            "metadata": {"labels": {"mine": "yes"}, "annotations": {DESCRIPTION: None}},
            "data": {"ca.crt": "forged", "other": "value"},
        }
        await client.patch(CONFIG_MAPS, "kube-root-ca.crt", change, "default")
        await asyncio.sleep(1)
        found = await client.get(CONFIG_MAPS, "kube-root-ca.crt", "default")
        assert found["data"] == {"ca.crt": ROOT_CA}
        assert found["metadata"]["annotations"][DESCRIPTION]
        assert found["metadata"]["labels"] == {"mine": "yes"}


@virtual_time
async def test_other_objects_are_left_alone() -> None:
    async with cluster() as client:
        await client.create(CONFIG_MAPS, {"metadata": {"name": "mine"}, "data": {"ca.crt": "x"}}, "default")
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, "default")
        await client.delete(SERVICE_ACCOUNTS, "robot", "default")
        await asyncio.sleep(1)
        assert (await client.get(CONFIG_MAPS, "mine", "default"))["data"] == {"ca.crt": "x"}
        assert await names(client, SERVICE_ACCOUNTS, "default") == ["default"]


@virtual_time
async def test_nothing_is_created_in_a_namespace_that_is_being_deleted() -> None:
    async with cluster() as client:
        await client.create(NAMESPACES, {"metadata": {"name": "going"}})
        await asyncio.sleep(1)
        # No namespace controller runs here: it stays Terminating.
        await client.delete(NAMESPACES, "going")
        for ref, name in BOTH:
            await client.delete(ref, name, "going")
        await asyncio.sleep(60)
        for ref, _ in BOTH:
            assert await names(client, ref, "going") == []


@virtual_time
async def test_a_creation_that_fails_is_tried_again() -> None:
    refused = 0

    async def disturb(request: Request, to_server: Handler) -> Response:
        nonlocal refused
        if request.method == "POST" and refused < 5:
            refused += 1
            return refusal(500, "InternalError")
        return await to_server(request)

    async with controlling(await start(), disturb) as client:
        await asyncio.sleep(30)
        assert refused == 5
        for ref, name in BOTH:
            assert await names(client, ref, "kube-public") == [name]
