"""The rights of the controller beside what it asks for in scenarios: it counts any kind, and writes only statuses."""

from __future__ import annotations

import asyncio

from podlife.controller import ControlPlane
from podlife.resourcequota import ResourceQuotaController
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.workloads.test_rights import EVENTS, Right, granted, right_of
from tests.kit.embedded import connect, start
from tests.resourcequota.runs import play
from tests.workloads.runs import at_work


@virtual_time
async def test_it_may_do_what_it_asks_for_and_nothing_else() -> None:
    handler, asked = await start(), set[Right]()

    async def note(request: Request, to_server: Handler) -> Response:
        if (right := right_of(request)) is not None:
            asked.add(right)
        return await to_server(request)

    plane = ControlPlane(connect(handler, note), clock=LoopClock())
    plane.add(ResourceQuotaController(plane))
    async with at_work(plane.run):
        await asyncio.sleep(1)
        assert not await play(connect(handler), "any-kind-is-counted")
    reading = {right for right in asked if right[0] in ("list", "watch")}
    assert {resource for _, resource in reading} >= {"deployments.apps", "resourcequotas"}
    allowed = granted()[ResourceQuotaController.name]
    assert asked - reading == {("patch", "resourcequotas/status")}
    assert allowed - EVENTS == {("list", "*.*"), ("watch", "*.*"), ("patch", "resourcequotas/status")}
