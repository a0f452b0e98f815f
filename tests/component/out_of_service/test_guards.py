"""What keeps nodes from being tainted, and taints from being touched, in a whole cluster under virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

from podlife.client import LEASES, NODES, PODS
from podlife.nodehealth.out_of_service import Portion
from podlife.nodehealth.out_of_service.views import ANNOTATION
from podlife.testing import Cluster, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.out_of_service.world import (
    LAX,
    NAME,
    TAINT,
    Fence,
    Making,
    annotation,
    cluster_with,
    events_of,
    node,
    nodes_out,
)
from tests.component.stories.objects import pod, taints
from tests.kit.embedded import refusal

STUBBORN = [{"operator": "Exists"}]


async def begin(cluster: Cluster, *nodes: str, **spec: Any) -> None:
    """A pod on each of these nodes, and on the others none."""
    for name in nodes:
        made = pod(f"on-{name}", name)
        made["spec"].update(spec)
        await cluster.client.create(PODS, made, "default")
    await cluster.settled()


async def lose_node(cluster: Cluster, **how_long: float) -> None:
    """The machine of n1, which has a pod, is off for so long."""
    await begin(cluster, "n1")
    await cluster.node("n1").power_off()
    await cluster.advance(**how_long)


async def refusals(cluster: Cluster, name: str) -> list[str]:
    return [message for reason, message in await events_of(cluster, name) if reason == "OutOfServiceRefused"]


@virtual_time
async def test_a_node_that_no_check_confirms_is_left_alone_and_that_is_told_once() -> None:
    fence = Fence()
    making = Making(LAX, fence)
    async with cluster_with(making) as cluster:
        await lose_node(cluster, minutes=4)
        assert await nodes_out(cluster) == []
        [said] = await refusals(cluster, "n1")
        assert said.endswith(
            ": 0 of 1 fence checks confirm that it is dead, all required: command fence: exit code 1"
        )
        times = [at for at, _ in fence.asked]
        assert len(times) >= 3
        assert min(after - before for before, after in pairwise(times)) >= 30
        assert {subject.name for _, subject in fence.asked} == {"n1"}
        assert making.controller.metrics.refused == {"not-confirmed": 1}
        assert making.controller.metrics.checks == {("command", "not-dead"): len(times)}
        fence.dead.add("n1")
        await cluster.until(lambda: making.controller.metrics.tainted == 1, within=40)


@virtual_time
async def test_the_check_is_told_who_the_node_is() -> None:
    fence = Fence("n1")
    async with cluster_with(Making(LAX, fence)) as cluster:
        await cluster.client.patch(NODES, "n1", {"spec": {"providerID": "sim://n1"}})
        await lose_node(cluster, minutes=3)
        [(_, subject)] = fence.asked
        assert subject.uid == (await node(cluster, "n1"))["metadata"]["uid"]
        assert (subject.provider_id, subject.internal_ips) == ("sim://n1", ("100.64.0.1",))
        assert 60 <= subject.not_ready_seconds < 80


@virtual_time
async def test_all_required_checks_have_to_confirm_it() -> None:
    first, second = Fence("n1"), Fence()
    async with cluster_with(Making(LAX, first, second)) as cluster:
        await lose_node(cluster, minutes=3)
        assert await nodes_out(cluster) == []
    async with cluster_with(Making(replace(LAX, require=1), first, second)) as cluster:
        await begin(cluster, "n1", tolerations=[])
        await cluster.node("n1").power_off()
        async with cluster.timeline(NODES) as seen:
            await cluster.advance(minutes=3)
            assert seen.first("Node", "n1", lambda change: TAINT in taints(change.object)) is not None


@virtual_time
async def test_a_node_whose_agent_renews_its_lease_is_never_tainted() -> None:
    """NotReady, and alive: whatever the fence says."""
    fence = Fence("n1")
    async with cluster_with(Making(LAX, fence)) as cluster:
        await begin(cluster, "n1")
        # Another one renews the lease of an agent that says nothing of the node.
        await cluster.node("n1").power_off()
        for second in range(0, 180, 15):
            spec = {"renewTime": f"2031-01-01T00:{second // 60:02}:{second % 60:02}.000000Z"}
            await cluster.client.patch(LEASES, "n1", {"spec": spec}, "kube-node-lease")
            ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
            status = {"status": {"conditions": [ready]}}
            await cluster.client.patch(NODES, "n1", status, subresource="status")
            await cluster.advance(seconds=15)
        assert await nodes_out(cluster) == []
        assert fence.asked == []
        [said] = await refusals(cluster, "n1")
        assert "renewed neither lease nor status for" in said


@virtual_time
async def test_a_node_of_the_control_plane_is_left_alone_unless_asked_for() -> None:
    label = {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}
    for with_control_plane, tainted in ((False, 0), (True, 1)):
        making = Making(replace(LAX, with_control_plane=with_control_plane), Fence("n1"))
        async with cluster_with(making) as cluster:
            await cluster.client.patch(NODES, "n1", label)
            await lose_node(cluster, minutes=3)
            assert making.controller.metrics.tainted == tainted
            assert len(await refusals(cluster, "n1")) == 1 - tainted


@virtual_time
async def test_nothing_is_done_to_a_node_with_nothing_to_free_on_it() -> None:
    fence = Fence("n1", "n2")
    making = Making(replace(LAX, most=Portion(percent=100)), fence)
    async with cluster_with(making) as cluster:
        await begin(cluster, "n2", tolerations=STUBBORN)
        for name in ("n1", "n2"):
            await cluster.node(name).power_off()
        await cluster.advance(minutes=3)
        assert (making.controller.metrics.tainted, fence.asked) == (0, [])
        assert making.controller.metrics.refused == {"nothing-to-free": 2}
        # It bears the taint, but somebody wants it to end.
        await cluster.client.delete(PODS, "on-n2", "default")
        await cluster.advance(minutes=1)
        assert making.controller.metrics.tainted == 1
        assert (await cluster.client.list(PODS)).items == []


# A taint of ours


@virtual_time
async def test_a_node_that_is_ready_again_loses_our_taint_and_is_left_alone_for_a_while() -> None:
    making = Making(replace(LAX, cool_down_seconds=300.0), Fence("n1"))
    async with cluster_with(making) as cluster:
        await cluster.controllers.kill("taint-eviction")
        await begin(cluster, "n1")
        await cluster.node("n1").stop()
        await cluster.advance(minutes=3)
        assert await nodes_out(cluster) == ["n1"]
        await cluster.node("n1").start()
        await cluster.advance(seconds=30)
        assert await nodes_out(cluster) == []
        assert json.loads(await annotation(cluster, "n1") or "")["state"] == "returned"
        assert making.controller.metrics.removed == {"ready-again": 1}
        await cluster.node("n1").stop()
        await cluster.advance(minutes=2)
        assert await nodes_out(cluster) == []
        assert making.controller.metrics.refused == {"cool-down": 1}
        # What was written down holds for the next process, too.
        await cluster.controllers.restart(NAME)
        await cluster.advance(seconds=90)
        assert await nodes_out(cluster) == []
        assert making.controller.metrics.refused == {"cool-down": 1}
        await cluster.advance(minutes=2)
        assert await nodes_out(cluster) == ["n1"]


# Without doing anything


@virtual_time
async def test_a_dry_run_tells_and_changes_nothing() -> None:
    making = Making(replace(LAX, is_dry_run=True), Fence("n1"))
    async with cluster_with(making) as cluster:
        await lose_node(cluster, minutes=4)
        assert await nodes_out(cluster) == []
        assert await annotation(cluster, "n1") is None
        assert await events_of(cluster, "n1") == [
            ("OutOfServiceTainted", "Dry run: would be set out of service, confirmed dead by command fence")
        ]
        assert making.controller.metrics.tainted == 0
        own = [entry for entry in cluster.audit.find(who=NAME) if "/events" not in entry.path]
        assert own == []


# When the server or the watch is bad


@virtual_time
async def test_time_in_which_nothing_is_heard_counts_against_nobody() -> None:
    fence = Fence("n1")
    making = Making(LAX, fence)
    async with cluster_with(making) as cluster:
        await lose_node(cluster, seconds=75)
        faults = cluster.controllers.faults(NAME)
        faults.cut()
        await cluster.advance(minutes=5)
        assert fence.asked == []
        faults.restore()
        await cluster.advance(seconds=10)
        assert fence.asked == [], "of the minute that it has only half a one was heard"
        await cluster.until(lambda: making.controller.metrics.tainted == 1, within=120)


@virtual_time
async def test_a_node_that_comes_back_while_it_is_being_asked_about_is_not_tainted() -> None:
    fence = Fence("n1")
    fence.hanging_seconds = 9.0
    making = Making(LAX, fence)
    async with cluster_with(making) as cluster:
        await begin(cluster, "n1")
        await cluster.node("n1").stop()
        await cluster.until(lambda: bool(fence.asked), within=600)
        await cluster.node("n1").start()
        await cluster.advance(minutes=2)
        assert making.controller.metrics.tainted == 0
        assert await nodes_out(cluster) == []


@virtual_time
async def test_a_node_that_is_heard_at_the_last_moment_is_not_tainted() -> None:
    """The server is asked once more for its lease: the watch may be behind."""
    making = Making(LAX, Fence("n1"))
    async with cluster_with(making) as cluster:
        await begin(cluster, "n1")
        asked: list[float] = []

        async def disturb(request: Request, onwards: Handler) -> Response:
            if request.method == "GET" and request.path.endswith("/leases/n1"):
                asked.append(cluster.time)
                spec = {"renewTime": "2031-01-01T00:00:00.000000Z"}
                await cluster.client.patch(LEASES, "n1", {"spec": spec}, "kube-node-lease")
            return await onwards(request)

        cluster.controllers.faults(NAME).disturb = disturb
        await cluster.node("n1").power_off()
        await cluster.until(lambda: bool(asked), within=180)
        await cluster.advance(seconds=30)
        assert making.controller.metrics.tainted == 0
        assert await nodes_out(cluster) == []
        assert making.controller.metrics.refused == {"agent-speaks": 1}


@virtual_time
async def test_what_cannot_be_read_leaves_the_node_as_it_is() -> None:
    fence = Fence("n1")
    making = Making(LAX, fence)
    async with cluster_with(making) as cluster:
        await begin(cluster, "n1")

        async def disturb(request: Request, onwards: Handler) -> Response:
            is_list = request.path.endswith("/pods") and request.method == "GET"
            return refusal(403, "Forbidden") if is_list else await onwards(request)

        cluster.controllers.faults(NAME).disturb = disturb
        await cluster.node("n1").power_off()
        await cluster.advance(minutes=3)
        assert (fence.asked, making.controller.metrics.tainted) == ([], 0)
        cluster.controllers.faults(NAME).disturb = None
        await cluster.until(lambda: making.controller.metrics.tainted == 1, within=60)


@virtual_time
async def test_a_patch_that_was_overtaken_is_decided_anew_and_carries_uid_and_revision() -> None:
    making = Making(LAX, Fence("n1"))
    async with cluster_with(making) as cluster:
        await begin(cluster, "n1")
        patches: list[Any] = []

        async def disturb(request: Request, onwards: Handler) -> Response:
            if request.method == "PATCH" and request.path.endswith("/nodes/n1"):
                patches.append(json.loads(request.body or b"{}"))
                if len(patches) == 1:
                    await cluster.client.patch(NODES, "n1", {"metadata": {"labels": {"somebody": "else"}}})
            return await onwards(request)

        cluster.controllers.faults(NAME).disturb = disturb
        await cluster.node("n1").power_off()
        await cluster.advance(minutes=3)
        found = await node(cluster, "n1")
        assert found["metadata"]["labels"]["somebody"] == "else"
        assert making.controller.metrics.tainted == 1
        for patch in patches:
            assert patch["metadata"]["uid"] == found["metadata"]["uid"]
            assert patch["metadata"]["resourceVersion"]
        first, second = patches[:2]
        assert first["metadata"]["resourceVersion"] != second["metadata"]["resourceVersion"]
        tainted = json.loads(second["metadata"]["annotations"][ANNOTATION])
        assert (tainted["state"], tainted["by"]) == ("tainted", "podlife-out-of-service")
        assert tainted["at"] in [each.get("timeAdded") for each in second["spec"]["taints"]]
