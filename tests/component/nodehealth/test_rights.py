"""The rights in `deploy/controllers` beside what node health asks for: none is missing, and none is too much."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import NODES
from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import world
from tests.component.workloads.test_rights import Right, granted, right_of


@pytest.mark.parametrize("controller", ["node-lifecycle-controller", "taint-eviction-controller"])
@virtual_time
async def test_a_controller_may_do_what_it_asks_for_and_nothing_else(controller: str) -> None:
    seen = set[Right]()

    async def note(request: Request, to_server: Handler) -> Response:
        if (right := right_of(request)) is not None:
            seen.add(right)
        return await to_server(request)

    is_lifecycle = controller == "node-lifecycle-controller"
    async with (
        world() as w,
        w.at_work(way=note, lifecycle=is_lifecycle, eviction=not is_lifecycle),
        w.at_work(lifecycle=not is_lifecycle, eviction=is_lifecycle),
    ):
        await w.add_node("n1", labels={"kubernetes.io/os": "linux"})
        await w.add_node("n2")
        await w.add_pod("web", "n1")
        await w.client.patch(NODES, "n2", {"spec": {"unschedulable": True}})
        await asyncio.sleep(10)
        await w.stop("n1")
        await asyncio.sleep(360)
        assert await w.has_gone("web")
        assert (await w.node("n1"))["metadata"]["labels"]["beta.kubernetes.io/os"] == "linux"
    allowed = granted()[controller]
    assert seen - allowed == set(), "missing"
    lists = {("list", resource) for verb, resource in allowed if verb == "watch"}
    # An event is patched when it comes again.
    assert allowed - seen - lists <= {("patch", "events")}, "too much"
