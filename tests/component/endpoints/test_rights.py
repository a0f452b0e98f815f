"""The rights of the endpoint controllers beside what they ask for in scenarios: none is missing, none is too much."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from podlife.controller import ControlPlane
from podlife.endpoints import EndpointsController, EndpointSliceController, EndpointSliceMirroringController
from podlife.ownergc import OwnerGarbageCollector
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.workloads.test_rights import EVENTS, Right, granted, right_of
from tests.endpoints.scenarios import SCENARIOS
from tests.endpoints.stage import Stage, create_nodes
from tests.kit.embedded import connect, start
from tests.workloads.runs import at_work

CONTROLLERS: dict[str, Any] = {
    each.name: each
    for each in (EndpointsController, EndpointSliceController, EndpointSliceMirroringController)
}
PLAYED = ("named-ports", "service-deleted-and-created-again", "own-endpoints-mirrored")
ASKED_FOR_ELSEWHERE = frozenset(
    {
        # Asked by a server with OwnerReferencesPermissionEnforcement, which `tests/real` starts.
        ("update", "services/finalizers"),
        ("update", "endpoints/finalizers"),
        # Asked by servers that do not let users write addresses of pods.
        ("create", "endpoints/restricted"),
    }
)


@pytest.mark.parametrize("controller", CONTROLLERS)
@virtual_time
async def test_a_controller_may_do_what_it_asks_for_and_nothing_else(controller: str) -> None:
    server, asked = await start(), set[Right]()

    async def note(request: Request, to_server: Handler) -> Response:
        if (right := right_of(request)) is not None:
            asked.add(right)
        return await to_server(request)

    async with AsyncExitStack() as stack:
        client = connect(server)
        await create_nodes(client)
        for make in (CONTROLLERS[controller], OwnerGarbageCollector):
            line = connect(server, None if make is OwnerGarbageCollector else note)
            plane = ControlPlane(line, clock=LoopClock())
            plane.add(make(plane))
            await stack.enter_async_context(at_work(plane.run))
        for name in PLAYED:
            stage = Stage(client, name)
            await stage.open()
            async for _ in SCENARIOS[name](stage):
                await asyncio.sleep(10)
    allowed = granted()[controller]
    assert asked - allowed == set(), "missing"
    # A list is for servers that do not stream it.
    lists = {("list", resource) for verb, resource in allowed if verb == "watch"}
    assert allowed - asked - lists - ASKED_FOR_ELSEWHERE == EVENTS, "too much"
    assert lists <= allowed
