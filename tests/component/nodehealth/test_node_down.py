"""A node dies: what happens when, on the embedded server under virtual time."""

from __future__ import annotations

import asyncio

from tests.component.nodehealth.world import (
    Asked,
    condition,
    is_terminating,
    now,
    ready_status,
    taints,
    world,
)
from tests.virtual_time import virtual_time


@virtual_time
async def test_40_s_to_not_ready_and_300_s_to_eviction() -> None:
    async with world() as w, w.at_work():
        for name in ("n1", "n2", "n3"):
            await w.add_node(name)
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
async def test_a_node_that_returns_in_time_keeps_its_pods() -> None:
    asked = Asked()
    async with world() as w, w.at_work(way=asked) as controllers:
        for name in ("n1", "n2"):
            await w.add_node(name)
        await w.add_pod("web", "n1")
        await asyncio.sleep(20)
        await w.stop("n1")
        await asyncio.sleep(200)
        assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert list(controllers.eviction.evictions.waiting)
        await w.post("n1")
        w.start("n1")
        await asyncio.sleep(6)
        assert await w.taints("n1") == []
        await asyncio.sleep(600)
        assert not await w.has_gone("web")
        assert asked.of("DELETE") == []
        assert await w.events("TaintManagerEviction") == ["Cancelling deletion of Pod default/web"]
