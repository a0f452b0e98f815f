"""A node dies: what happens when, on the embedded server under virtual time."""

from __future__ import annotations

import asyncio

from podlife.testing import virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import (
    Asked,
    condition,
    is_terminating,
    now,
    ready_status,
    taints,
    world,
)


@virtual_time
async def test_40_s_to_not_ready_and_300_s_to_eviction() -> None:
    async with world() as w, w.at_work():
        await w.add_nodes("n1", "n2", "n3")
        await w.add_pod("web", "n1")
        await w.add_pod("other", "n2")
        await asyncio.sleep(60)
        stopped_at = now()
        await w.stop("n1")
        await asyncio.sleep(400)
        silent_at = w.history.first("Node", "n1", lambda node: ready_status(node) == "Unknown")
        assert silent_at is not None
        # The last heartbeat is up to ten seconds old when it stops, and is seen, as the silence is, by a pass.
        assert 40 - 10 < silent_at - stopped_at <= 50
        tainted_at = w.history.first("Node", "n1", lambda node: "unreachable:NoExecute" in taints(node))
        assert tainted_at is not None
        assert 0 < tainted_at - silent_at < 0.5
        evicted_at = w.history.first("Pod", "web", is_terminating)
        assert evicted_at is not None
        assert 300 <= evicted_at - tainted_at < 300.5
        assert w.history.first("Pod", "other", is_terminating) is None
        assert w.history.states("Node", "n1", taints) == [
            [],
            ["unreachable:NoSchedule"],
            ["unreachable:NoSchedule", "unreachable:NoExecute"],
        ]
        # Not ready long before it goes, and told why before it does.
        shown = w.history.states(
            "Pod", "web", lambda pod: (condition(pod, "Ready").get("status"), is_terminating(pod))
        )
        assert shown == [(None, False), ("True", False), ("False", False), ("False", True)]
        told_at = w.history.first("Pod", "web", lambda pod: condition(pod, "DisruptionTarget"))
        assert told_at is not None
        assert told_at <= evicted_at


@virtual_time
async def test_all_nodes_down_at_once_taints_nobody_even_while_their_pods_are_being_marked() -> None:
    """That takes a while, and the zones are judged only after it."""
    asked = Asked()

    async def slowly(request: Request, to_server: Handler) -> Response:
        if request.method == "PATCH" and "/pods/" in request.path:
            await asyncio.sleep(2)
        return await to_server(request)

    asked.answer = slowly
    async with world() as w, w.at_work(way=asked) as controllers:
        for name in ("n1", "n2", "n3"):
            await w.add_node(name, beats=False)
            await w.add_pod(f"on-{name}", name)
        await asyncio.sleep(100)
        assert controllers.lifecycle.monitor.disruption.is_stopped
        for name in ("n1", "n2", "n3"):
            assert w.history.states("Node", name, taints) == [[], ["unreachable:NoSchedule"]]
