"""What is written onto nodes, on the embedded server: only what is still right when it is written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.client import NODES, Client
from podlife.errors import ConflictError
from podlife.nodehealth.out_of_service.node_writer import NodeWriter
from podlife.nodehealth.out_of_service.views import ANNOTATION
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.stories.objects import OUT_OF_SERVICE
from tests.kit.embedded import connect, start

OTHER = {"key": "repair", "effect": "NoSchedule"}
ALSO_OUT = {"key": OUT_OF_SERVICE["key"], "effect": "NoSchedule"}


class World:
    """One node, n1, and who writes onto it; `between` is done before each patch."""

    def __init__(self, client: Client, uid: str) -> None:
        self.client = client
        self.uid = uid
        self.writer: NodeWriter
        self.between: Any = None

    async def set(self) -> bool:
        return await self.writer.set("n1", self.uid, lambda node, lease: True)

    async def taint(self, *taints: Any) -> None:
        await self.client.patch(NODES, "n1", {"spec": {"taints": list(taints)}})

    async def post(self, status: str) -> None:
        patch = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        await self.client.patch(NODES, "n1", patch, subresource="status")

    async def taints(self) -> list[tuple[str, str]]:
        found = (await self.client.get(NODES, "n1"))["spec"].get("taints") or []
        return [(each["key"], each["effect"]) for each in found]

    async def state(self) -> str | None:
        annotations = (await self.client.get(NODES, "n1"))["metadata"].get("annotations") or {}
        return json.loads(annotations[ANNOTATION])["state"] if ANNOTATION in annotations else None


OURS = (OUT_OF_SERVICE["key"], "NoExecute")


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    handler = await start()
    async with connect(handler) as client:
        made = await client.create(NODES, {"metadata": {"name": "n1"}})
        w = World(client, made["metadata"]["uid"])

        async def disturb(request: Request, to_server: Handler) -> Response:
            if request.method == "PATCH" and w.between is not None:
                await w.between()
            return await to_server(request)

        async with connect(handler, disturb) as own:
            w.writer = NodeWriter(own, LoopClock())
            yield w


@virtual_time
async def test_ours_comes_and_goes_and_everybody_elses_stays() -> None:
    async with world() as w:
        await w.taint(OTHER)
        assert await w.set()
        assert await w.taints() == [("repair", "NoSchedule"), OURS]
        assert await w.state() == "tainted"
        assert not await w.set(), "there is one already"
        found = (await w.client.get(NODES, "n1"))["spec"]["taints"]
        await w.taint(*found, ALSO_OUT)
        assert not await w.writer.remove("n1", w.uid, only_if_ready=True)
        assert await w.writer.remove("n1", w.uid, only_if_ready=False)
        assert await w.taints() == [("repair", "NoSchedule"), (OURS[0], "NoSchedule")]
        assert await w.state() == "freed"
        assert not await w.writer.remove("n1", w.uid, only_if_ready=False)


@virtual_time
async def test_a_node_that_is_ready_by_then_is_not_tainted_and_loses_ours_as_returned() -> None:
    async with world() as w:
        await w.post("True")
        assert not await w.set()
        await w.post("Unknown")
        assert await w.set()
        assert not await w.writer.note_return("n1", w.uid)
        await w.post("True")
        assert await w.writer.remove("n1", w.uid, only_if_ready=False)
        assert (await w.taints(), await w.state()) == ([], "returned")
        assert await w.writer.forget("n1", w.uid)
        assert await w.state() is None
        assert not await w.writer.forget("n1", w.uid)


@virtual_time
async def test_a_taint_of_a_person_is_neither_doubled_nor_taken_off() -> None:
    async with world() as w:
        await w.taint(OUT_OF_SERVICE)
        assert not await w.set()
        assert not await w.writer.remove("n1", w.uid, only_if_ready=False)
        assert (await w.taints(), await w.state()) == ([OURS], None)


@virtual_time
async def test_who_is_overtaken_writes_nothing() -> None:
    async with world() as w:

        async def overtake() -> None:
            await w.taint(OTHER)

        w.between = overtake
        with pytest.raises(ConflictError):
            await w.set()
        assert (await w.taints(), await w.state()) == ([("repair", "NoSchedule")], None)


@virtual_time
async def test_a_node_that_was_made_anew_or_is_gone_is_left_alone() -> None:
    async with world() as w:
        await w.client.delete(NODES, "n1")
        assert not await w.set()
        await w.client.create(NODES, {"metadata": {"name": "n1"}})
        assert not await w.set()
        for writing in (
            w.writer.remove("n1", w.uid, only_if_ready=False),
            w.writer.note_return("n1", w.uid),
            w.writer.forget("n1", w.uid),
        ):
            assert not await writing
        assert (await w.taints(), await w.state()) == ([], None)
