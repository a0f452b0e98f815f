"""The rights of the volume controllers beside what they ask for: none is missing, none is too much."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from podlife.client import VOLUME_ATTRIBUTES_CLASSES
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.workloads.test_rights import EVENTS, Right, granted, right_of
from tests.kit.embedded import connect, start
from tests.volumes.runs import CONTROLLERS
from tests.volumes.scenarios import SCENARIOS
from tests.volumes.stage import Stage
from tests.workloads.runs import at_work

PLAYED = (
    "retained-volume-is-released",
    "claim-in-use-is-kept",
    "protection-is-added-to-what-lacks-it",
    "ephemeral-volume",
    "volume-is-deleted-while-available",
)
# Asked by a server with OwnerReferencesPermissionEnforcement.
ASKED_FOR_ELSEWHERE = frozenset({("update", "pods/finalizers")})


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda each: each.name)
@virtual_time
async def test_a_controller_may_do_what_it_asks_for_and_nothing_else(controller: type) -> None:
    server, asked = await start(), set[Right]()

    async def note(request: Request, to_server: Handler) -> Response:
        if (right := right_of(request)) is not None:
            asked.add(right)
        return await to_server(request)

    async with AsyncExitStack() as stack:
        client = connect(server)
        for make in CONTROLLERS:
            plane = ControlPlane(connect(server, note if make is controller else None), clock=LoopClock())
            plane.add(make(plane))
            await stack.enter_async_context(at_work(plane.run))
        await asyncio.sleep(1)
        body = {"metadata": {"name": "gold"}, "driverName": "example.com", "parameters": {"iops": "9"}}
        await client.create(VOLUME_ATTRIBUTES_CLASSES, body)
        await client.delete(VOLUME_ATTRIBUTES_CLASSES, "gold")
        for name in PLAYED:
            stage = Stage(client, name)
            await stage.open()
            async for _ in SCENARIOS[name](stage):
                await asyncio.sleep(20)
        assert (await client.list(VOLUME_ATTRIBUTES_CLASSES)).items == []
    allowed = granted()[controller.name]  # type: ignore[attr-defined]
    assert asked - EVENTS <= allowed
    assert allowed - asked - EVENTS <= ASKED_FOR_ELSEWHERE
