"""TN-01 to TN-08: taints written onto nodes, and the hash of a template, which stands beside them upstream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.client import NODES
from podlife.errors import ConflictError, NotFoundError
from podlife.nodehealth.taint_writer import TaintWriter
from podlife.nodehealth.views import MonitoredNode
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from podlife.workloads.deployment.rollout import template_hash
from tests.component.nodehealth.world import Asked, World, taints, world
from tests.kit.embedded import connect, refusal

A, B, C = ("a", "NoExecute"), ("b", "NoExecute"), ("c", "NoSchedule")


@asynccontextmanager
async def writing(*keys: str) -> AsyncIterator[tuple[World, TaintWriter, Asked, MonitoredNode]]:
    """A node with these taints, as its writer has seen it."""
    asked = Asked()
    async with world() as w, connect(w.server, asked) as client:
        await w.add_node("n1", beats=False)
        await w.taint("n1", *keys)
        node = await w.client.get(NODES, "n1", view=MonitoredNode)
        yield w, TaintWriter(client, LoopClock()), asked, node


def calls(asked: Asked) -> list[str]:
    return [method for _, method, _ in asked.requests]


@virtual_time
async def test_adding_is_a_read_and_a_patch_or_less() -> None:
    """TN-01: one patch for several; none for what is there; no call at all for nothing."""
    async with writing() as (w, writer, asked, node):
        await writer.add(node, [])
        assert calls(asked) == []
        await writer.add(node, [A, C])
        assert calls(asked) == ["GET", "PATCH"]
        assert await w.taints("n1") == ["a:NoExecute", "c:NoSchedule"]
        # At the same moment it is the very same taint.
        await writer.add(node, [A, C])
        assert calls(asked) == ["GET", "PATCH", "GET"]


@virtual_time
async def test_a_taint_with_another_value_or_time_is_replaced_in_its_place() -> None:
    """TN-02."""
    async with writing() as (w, writer, _, node):
        old = [{"key": "a", "effect": "NoExecute", "value": "v"}, {"key": "b", "effect": "NoExecute"}]
        await w.client.patch(NODES, "n1", {"spec": {"taints": old}})
        await asyncio.sleep(5)
        await writer.add(node, [A])
        first, second = (await w.node("n1"))["spec"]["taints"]
        assert (first["key"], first.get("value"), first["timeAdded"]) == ("a", None, "2030-01-01T00:00:05Z")
        assert second["key"] == "b"


@virtual_time
async def test_an_edit_that_was_overtaken_is_made_again_on_what_there_is() -> None:
    """TN-03: a taint that vanished meanwhile does not come back; after five tries it is given up."""
    async with writing("old") as (w, writer, asked, node):

        async def overtake(request: Request, to_server: Handler) -> Response:
            if request.method == "PATCH":
                asked.answer = None
                await w.taint("n1", "new")
            return await to_server(request)

        asked.answer = overtake
        await writer.add(node, [A])
        assert calls(asked) == ["GET", "PATCH", "GET", "PATCH"]
        assert await w.taints("n1") == ["new:NoExecute", "a:NoExecute"]
        at = [at for at, method, _ in asked.requests if method == "GET"]
        assert 0.1 <= at[1] - at[0] <= 0.2

        async def always(request: Request, to_server: Handler) -> Response:
            return refusal(409, "Conflict") if request.method == "PATCH" else await to_server(request)

        asked.answer, asked.requests = always, []
        with pytest.raises(ConflictError):
            await writer.add(node, [B])
        assert calls(asked) == ["GET", "PATCH"] * 5


@virtual_time
async def test_a_node_that_is_missing_is_said_to_be() -> None:
    """TN-04: also when another one has its name by now."""
    async with writing(A[0]) as (w, writer, asked, node):
        await w.client.delete(NODES, "n1")
        with pytest.raises(NotFoundError):
            await writer.add(node, [B])
        await w.client.create(NODES, {"metadata": {"name": "n1"}})
        with pytest.raises(NotFoundError):
            await writer.remove(node, [A])
        assert "PATCH" not in calls(asked)


@virtual_time
async def test_the_first_read_may_be_of_any_version_and_a_repeated_one_is_fresh() -> None:
    """TN-05."""
    versions = []
    async with writing() as (_, writer, asked, node):

        async def note(request: Request, to_server: Handler) -> Response:
            if request.method == "GET":
                versions.append(request.query.get("resourceVersion", ""))
            elif len(versions) == 1:
                return refusal(409, "Conflict")
            return await to_server(request)

        asked.answer = note
        await writer.add(node, [A])
        assert versions == ["0", ""]


@virtual_time
async def test_removing_what_is_not_there_asks_nobody() -> None:
    """TN-06: several are one patch."""
    async with writing("a", "b", "kept") as (w, writer, asked, node):
        assert not await writer.remove(node, [C, ("a", "NoSchedule")])
        assert calls(asked) == []
        assert await writer.remove(node, [A, B, C])
        assert calls(asked) == ["GET", "PATCH"]
        assert await w.taints("n1") == ["kept:NoExecute"]


@virtual_time
async def test_the_patch_carries_the_revision_that_was_read() -> None:
    """TN-07: and the UID; what else is in a taint of somebody else's stays."""
    patches: list[dict[str, Any]] = []
    async with writing("a") as (w, writer, asked, node):

        async def note(request: Request, to_server: Handler) -> Response:
            if request.method == "PATCH":
                patches.append(json.loads(request.body))
            return await to_server(request)

        asked.answer = note
        before = (await w.node("n1"))["metadata"]
        await writer.add(node, [B])
        assert patches[0]["metadata"] == {"uid": before["uid"], "resourceVersion": before["resourceVersion"]}
        assert taints(await w.node("n1")) == ["a:NoExecute", "b:NoExecute"]


def test_the_hash_of_a_template_differs_by_its_collisions() -> None:
    """TN-08."""
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}]},
    }
    assert template_hash(template, 1) != template_hash(template, 2)
    assert template_hash(template, None) != template_hash(template, 2147483647)
