"""Node health when the controller, the watches or the server fail it: nobody is declared dead, or deleted, for that."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import NODES, PODS
from podlife.controller import Again
from podlife.errors import ForbiddenError
from podlife.nodehealth import NodeHealthSettings
from podlife.nodehealth.node_health import ClockReading, Examination, examine
from podlife.nodehealth.unknown_status import UnknownStatusWriter
from podlife.nodehealth.views import Lease, MonitoredNode
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.nodehealth.world import (
    Line,
    condition,
    is_terminating,
    now,
    ready_status,
    taints,
    tolerates,
    world,
)
from tests.kit import embedded
from tests.kit.embedded import refusal

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}


@virtual_time
async def test_a_controller_that_is_killed_in_the_middle_goes_on_from_what_the_server_has() -> None:
    """Killed at every stage: before the node is silent, between the writes, during the toleration."""
    async with world() as w:
        await w.add_nodes("n1", "n2", "n3")
        await w.add_pod("web", "n1")
        async with w.at_work():
            await asyncio.sleep(20)
        await w.stop("n1")
        async with w.at_work():
            await asyncio.sleep(30)
        assert ready_status(await w.node("n1")) == "True"
        async with w.at_work():
            await asyncio.sleep(45.2)
        assert ready_status(await w.node("n1")) == "Unknown"
        async with w.at_work():
            await asyncio.sleep(100)
            assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        began_at = now()
        async with w.at_work():
            await asyncio.sleep(310)
        evicted_at = w.history.first("Pod", "web", is_terminating)
        assert evicted_at is not None
        # As upstream: the taint is taken off and put on again, and the toleration begins anew.
        assert 300 <= evicted_at - began_at < 302
        assert condition(await w.pod("web") or {}, "Ready")["status"] == "False"


@pytest.mark.parametrize("turns", range(0, 400, 23))
@virtual_time
async def test_a_controller_that_is_killed_at_any_step_leaves_nothing_half_done(turns: int) -> None:
    settings = NodeHealthSettings(monitor_period_seconds=1, monitor_grace_seconds=1, eviction_rate=10)
    async with world() as w:
        await w.add_node("up", beats=False)
        await w.add_node("n1", beats=False)
        await w.add_pod("web", "n1", tolerations=[tolerates("node.kubernetes.io/unreachable", 1)])
        await asyncio.sleep(10)

        async def keep_up() -> None:
            while True:
                await w.renew("up")
                await asyncio.sleep(0.4)

        async with asyncio.TaskGroup() as group:
            beating = group.create_task(keep_up())
            async with w.at_work(settings):
                await asyncio.sleep(2)
                for _ in range(turns):
                    await asyncio.sleep(0)
            async with w.at_work(settings):
                await asyncio.sleep(8)
            beating.cancel()
        assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert condition(await w.pod("web") or {}, "Ready")["status"] == "False"
        assert await w.has_gone("web")
        assert (await w.taints("up"), ready_status(await w.node("up"))) == ([], "True")


@virtual_time
async def test_with_cut_watches_nothing_is_decided_and_that_time_counts_against_nobody() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line):
        for name in ("n1", "n2"):
            await w.add_node(name)
            await w.add_pod(f"on-{name}", name)
        await asyncio.sleep(20)
        line.cut |= {"leases", "nodes"}
        await asyncio.sleep(20)
        await w.stop("n1")
        await asyncio.sleep(300)
        assert line.writes() == []
        line.cut.clear()
        healed_at = now()
        await asyncio.sleep(120)
        silent_at = w.history.first("Node", "n1", lambda node: ready_status(node) == "Unknown")
        assert silent_at is not None
        assert 40 < silent_at - healed_at < 90
        assert w.history.states("Node", "n2", taints) == [[]]


@virtual_time
async def test_a_watch_that_breaks_every_now_and_then_keeps_no_dead_node_alive() -> None:
    """Only the gaps are left out, they do not begin the grace anew."""
    line = Line()
    async with world() as w, w.at_work(way=line):
        await w.add_nodes("n1", "n2")
        await asyncio.sleep(20)
        await w.stop("n1")
        for _ in range(14):
            line.cut.add("leases")
            await asyncio.sleep(11)
            line.cut.clear()
            await asyncio.sleep(20)
        silent_at = w.history.first("Node", "n1", lambda node: ready_status(node) == "Unknown")
        assert silent_at is not None
        assert ready_status(await w.node("n2")) == "True"


@virtual_time
async def test_a_watch_that_is_stuck_makes_no_node_dead() -> None:
    """Nothing says that it is: the server is asked for the lease before a node is declared silent."""
    line = Line()
    async with world() as w, w.at_work(way=line):
        for name in ("n1", "n2"):
            await w.add_node(name)
            await w.add_pod(f"on-{name}", name)
        await asyncio.sleep(20)
        line.stuck.add("leases")
        await asyncio.sleep(140)
        assert len(line.of("GET", "/leases/n1")) >= 2
        assert line.writes() == []
        assert {ready_status(await w.node(name)) for name in ("n1", "n2")} == {"True"}
        await w.stop("n1")
        line.stuck.clear()
        await asyncio.sleep(60)
        assert ready_status(await w.node("n1")) == "Unknown"


@virtual_time
async def test_a_watch_that_is_stuck_deletes_nobody_whose_node_is_well_again() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line, lifecycle=False):
        await w.add_node("n1")
        await w.add_pod("web", "n1", tolerations=[tolerates("repair", 60)])
        await w.taint("n1", "repair")
        await asyncio.sleep(10)
        line.stuck.add("nodes")
        await asyncio.sleep(1)
        await w.taint("n1")
        await asyncio.sleep(100)
        assert not await w.has_gone("web")
        line.stuck.clear()
        await asyncio.sleep(100)
        assert not await w.has_gone("web")
        assert await w.events("TaintManagerEviction") == [], "nobody was told that it goes"


@virtual_time
async def test_a_server_that_hangs_makes_no_node_dead() -> None:
    """Agents cannot renew meanwhile either, and when it is back nothing has changed yet: that is not their silence."""
    line = Line()
    frozen = asyncio.Event()
    frozen.set()

    async def freeze(request: Request, to_server: Handler) -> Response:
        await frozen.wait()
        return await to_server(request)

    line.answer = freeze
    async with world() as w, w.at_work(way=line):
        for name in ("n1", "n2", "n3"):
            await w.add_node(name)
            await w.add_pod(f"on-{name}", name)
        await asyncio.sleep(20)
        frozen.clear()
        line.stuck |= {"nodes", "leases", "pods"}
        await w.stop("n1", "n2", "n3")
        await asyncio.sleep(90)
        frozen.set()
        line.stuck.clear()
        await asyncio.sleep(20)
        for name in ("n1", "n2", "n3"):
            w.start(name)
            await w.renew(name)
        await asyncio.sleep(100)
        assert line.writes() == []
        assert {ready_status(await w.node(name)) for name in ("n1", "n2", "n3")} == {"True"}


@virtual_time
async def test_after_an_outage_agents_have_the_time_that_they_had_before_it() -> None:
    """They could not renew either, and need a moment to come back."""
    line = Line()
    async with world() as w, w.at_work(way=line) as controllers:
        await w.add_nodes("n1", "n2")
        # Between two heartbeats, so that the last one was seen.
        await asyncio.sleep(25)
        line.cut |= {"leases", "nodes", "pods"}
        await w.stop("n1", "n2")
        await asyncio.sleep(100)
        line.cut.clear()
        async with asyncio.timeout(60):
            while not controllers.lifecycle._are_caches_live():
                await asyncio.sleep(0.1)
        await asyncio.sleep(16)
        w.start("n1")
        await w.renew("n1")
        await asyncio.sleep(60)
        assert w.history.states("Node", "n1", ready_status) == [None, "True"]
        assert ready_status(await w.node("n2")) == "Unknown", "it had its time"


@virtual_time
async def test_an_answer_that_took_long_says_nothing() -> None:
    line = Line()

    async def slowly(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if request.method == "GET" and request.path.endswith("/leases/n1"):
            await asyncio.sleep(7)
        return response

    async with world() as w, w.at_work(way=line):
        await w.add_nodes("n2", silent="n1")
        await asyncio.sleep(10)
        line.answer = slowly
        await asyncio.sleep(150)
        assert len(line.of("GET", "/leases/n1")) >= 2
        assert (line.writes("/nodes/n1"), ready_status(await w.node("n1"))) == ([], "True")
        line.answer = None
        await asyncio.sleep(60)
        assert ready_status(await w.node("n1")) == "Unknown"


@virtual_time
async def test_pods_of_a_node_that_was_silent_before_the_controller_began_are_marked() -> None:
    """It may have been killed between the node and its pods."""
    async with world() as w:
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("web", "n1")
        await w.post("n1", Ready="Unknown")
        async with w.at_work():
            await asyncio.sleep(1)
            assert condition(await w.pod("web") or {}, "Ready")["status"] == "False"


@virtual_time
async def test_while_a_cache_is_not_live_nobody_is_deleted_or_tainted() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line) as controllers:
        await w.add_node("n1")
        await w.add_pod("web", "n1", tolerations=[tolerates("repair", 30)])
        await w.taint("n1", "repair")
        await asyncio.sleep(10)
        line.cut.add("pods")
        await asyncio.sleep(60)
        assert not await w.has_gone("web")
        await w.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
        await asyncio.sleep(1)
        assert await w.taints("n1") == ["repair:NoExecute", "unschedulable:NoSchedule"], (
            "pods do not matter to it"
        )
        line.cut.add("nodes")
        await asyncio.sleep(1)
        await w.client.patch(NODES, "n1", {"spec": {"unschedulable": None, "taints": None}})
        assert await controllers.lifecycle.reconcile("n1") == Again(1.0)
        assert await w.taints("n1") == []
        line.cut.clear()
        await asyncio.sleep(60)
        assert not await w.has_gone("web"), "the taint was gone by then"
        await w.taint("n1", "repair")
        await asyncio.sleep(31)
        assert await w.has_gone("web")


@virtual_time
async def test_a_node_that_is_heard_at_the_last_moment_is_left() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line):
        for name in ("n1", "n2"):
            await w.add_node(name, beats=name == "n2")

        async def renew_first(request: Request, to_server: Handler) -> Response:
            if request.method == "GET" and request.path.endswith("/leases/n1"):
                line.answer = None
                await w.renew("n1")
            return await to_server(request)

        line.answer = renew_first
        await asyncio.sleep(60)
        assert len(line.of("GET", "/leases/n1")) == 1
        assert ready_status(await w.node("n1")) == "True"


@virtual_time
async def test_a_node_that_speaks_between_the_look_and_the_write_is_left() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line):
        for name in ("n1", "n2"):
            await w.add_node(name, beats=name == "n2")

        async def speak_first(request: Request, to_server: Handler) -> Response:
            if request.method == "PATCH" and request.path.endswith("/nodes/n1/status"):
                line.answer = None
                await w.post("n1")
            return await to_server(request)

        line.answer = speak_first
        await asyncio.sleep(60)
        assert len(line.of("PATCH", "/nodes/n1/status")) == 1
        assert w.history.states("Node", "n1", ready_status) == [None, "True"]


@virtual_time
async def test_a_pod_that_comes_to_bear_the_taint_while_the_server_is_asked_stays() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line, lifecycle=False):
        await w.add_node("n1")
        pod = await w.add_pod("web", "n1")

        async def bear(request: Request, to_server: Handler) -> Response:
            response = await to_server(request)
            if request.method == "GET" and request.path.endswith("/nodes/n1"):
                line.answer = None
                more = [*pod["spec"]["tolerations"], tolerates("repair")]
                await w.client.patch(PODS, "web", {"spec": {"tolerations": more}}, "default")
                await asyncio.sleep(1)
            return response

        line.answer = bear
        await w.taint("n1", "repair")
        await asyncio.sleep(10)
        assert line.answer is None
        assert not await w.has_gone("web")


@virtual_time
async def test_a_new_node_is_told_once_though_nothing_can_be_written() -> None:
    line = Line()

    async def refuse(request: Request, to_server: Handler) -> Response:
        return refusal(500) if request.path.endswith("/status") else await to_server(request)

    line.answer = refuse
    async with world() as w:
        await w.client.create(NODES, {"metadata": {"name": "n1"}})
        await asyncio.sleep(100)
        async with w.at_work(way=line):
            await asyncio.sleep(30)
            assert len(line.of("PATCH", "/nodes/n1/status")) > 20
            assert len(await w.events("RegisteredNode")) == 1


@virtual_time
async def test_a_node_made_anew_under_its_name_is_new() -> None:
    async with world() as w, w.at_work():
        await w.add_nodes("n2", silent="n1")
        await asyncio.sleep(60)
        assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        await w.client.delete(NODES, "n1")
        await w.add_node("n1")
        await asyncio.sleep(60)
        assert await w.taints("n1") == []
        assert len(await w.events("RegisteredNode")) == 3
        assert await w.events("RemovingNode") == ["Node n1 event: Removing Node n1 from Controller"]


@virtual_time
async def test_a_controller_that_is_behind_its_own_writes_tells_and_marks_once() -> None:
    line = Line()
    async with world() as w, w.at_work(way=line):
        await w.add_nodes("n2", silent="n1")
        await w.add_pod("web", "n1")
        await asyncio.sleep(45)
        line.stuck |= {"nodes", "pods"}
        await asyncio.sleep(40)
        assert ready_status(await w.node("n1")) == "Unknown"
        line.stuck.clear()
        await asyncio.sleep(30)
        assert await w.events("NodeNotReady") == ["Node n1 status is now: NodeNotReady", "Node is not ready"]
        assert len([path for _, path in line.writes("/nodes/n1/status")]) == 1
        assert await w.taints("n1") == ["unreachable:NoSchedule", "unreachable:NoExecute"]


@virtual_time
async def test_a_server_that_refuses_the_watch_for_good_ends_it_with_its_reason() -> None:
    line = Line()

    async def refuse(request: Request, to_server: Handler) -> Response:
        if request.path.endswith("/leases"):
            return refusal(403, "Forbidden")
        return await to_server(request)

    line.answer = refuse
    with pytest.raises(BaseExceptionGroup) as failed:
        async with world() as w, w.at_work(way=line):
            await asyncio.sleep(600)
    assert failed.value.subgroup(ForbiddenError) is not None


@virtual_time
async def test_a_node_recreated_since_it_was_seen_to_be_silent_is_neither_written_nor_known() -> None:
    """What was decided is about the node before; its successor is seen for the first time by the next pass."""
    handler = await embedded.start()
    client, clock = embedded.connect(handler), LoopClock()
    await client.create(NODES, {"metadata": {"name": "n1"}})
    await client.patch(NODES, "n1", {"status": {"conditions": [READY]}}, subresource="status")
    silent = await client.get(NODES, "n1", view=MonitoredNode)
    await client.delete(NODES, "n1")
    await client.create(NODES, {"metadata": {"name": "n1"}})
    await client.patch(NODES, "n1", {"status": {"conditions": [READY]}}, subresource="status")

    def as_long_silent(node: MonitoredNode, lease: Lease | None) -> Examination:
        known = examine(node, lease, None, ClockReading(clock.now(), -1000.0), NodeHealthSettings()).health
        return examine(node, lease, known, ClockReading(clock.now(), 0.0), NodeHealthSettings())

    silences = UnknownStatusWriter(client, clock, patience_seconds=10.0)
    assert await silences.write(silent, as_long_silent) is None
    found = await client.get(NODES, "n1")
    assert [each["status"] for each in found["status"]["conditions"]] == ["True"]

    successor = await client.get(NODES, "n1", view=MonitoredNode)
    look = await silences.write(successor, as_long_silent)
    assert look is not None
    assert look.node.metadata.uid == successor.metadata.uid
    found = await client.get(NODES, "n1")
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]}["Ready"] == "Unknown"
    await client.close()
