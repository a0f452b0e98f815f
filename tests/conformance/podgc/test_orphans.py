"""Pods whose node is gone. Upstream's scheme is two passes with the clock turned in between; here the node's
quarantine ends when it ends, and what would be the second pass comes by itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from podlife.podgc import FeatureGates, Reason
from podlife.wire import Request, Response
from tests.component.podgc.world import GONE_NODE, World, answering, delaying, in_world, running
from tests.conformance.podgc.situations import P, Q, Row, collect, expect, make

SECOND = "deleted-too"


@dataclass(frozen=True)
class Case:
    row: Row
    seconds: float = 1.5 * Q
    # In the cache and at the server.
    nodes: tuple[str, ...] = ()
    # At the server only: the watch of nodes does not tell of them.
    hidden: tuple[str, ...] = ()
    # How often the server was asked for a node: upstream's names due in the queue.
    looks: int = 0


def phases(node: str, *wanted: str) -> list[P]:
    return [P(name, phase, node=node) for name, phase in zip("abcd", wanted, strict=False)]


CASES = {
    "GC-60": Case(
        Row(
            [P("a", node="existing1"), P("b", "Failed", "existing2"), P("c", "Succeeded", "existing2")],
            set(),
            set(),
        ),
        nodes=("existing1", "existing2"),
    ),
    "GC-61": Case(
        Row(
            [P("a", node="existing1"), P("b", "Failed", "existing2"), P("c", "Succeeded", "existing2")],
            set(),
            set(),
        ),
        hidden=("existing1", "existing2"),
        looks=2,
    ),
    "GC-62": Case(Row(phases(GONE_NODE, "Failed", "Succeeded"), {"a", "b"}, set()), looks=1),
    "GC-63": Case(Row(phases(GONE_NODE, "Failed", "Succeeded", "Running"), {"a", "b", "c"}, {"c"}), looks=1),
    "GC-64": Case(Row(phases(GONE_NODE, "Failed"), set(), set()), seconds=0),
    "GC-66": Case(
        Row(
            [
                P("a", "Failed", GONE_NODE),
                P("b", "Failed", "existing"),
                P("c", "Succeeded", GONE_NODE),
                P("d", "Running", GONE_NODE),
            ],
            {"a", "c", "d"},
            {"d"},
        ),
        nodes=("existing",),
        looks=1,
    ),
}


async def found(request: Request) -> Response:
    """The server knows the node, though no event has told of it."""
    return Response(200, b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}')


@pytest.mark.parametrize("case", [pytest.param(case, id=rule) for rule, case in CASES.items()])
@in_world
async def test_pods_go_when_their_node_is_gone_for_longer_than_the_quarantine(
    world: World, case: Case
) -> None:
    """GC-50: pods on nodes that are there have nobody looked for. GC-54: whatever their phase."""
    for name in case.nodes:
        await world.node(name)
    await make(world, case.row.pods)
    for name in case.hidden:
        world.faults.put("GET", f"/nodes/{name}$", found)
    collector = world.collector(threshold=0)
    async with running(collector):
        await asyncio.sleep(Q - 0.1)
        assert not world.faults.sent("DELETE")
        await asyncio.sleep(max(0.0, case.seconds - Q))
    await expect(world, case.row, collector)
    assert sum(collector.metrics.node_checks.values()) == case.looks


@in_world
async def test_a_node_that_the_server_knows_saves_its_pods_though_no_event_told_of_it(world: World) -> None:
    """GC-67: made at the server after the quarantine, and not in the cache yet."""
    await make(world, phases(GONE_NODE, "Running"))
    world.faults.put("GET", f"/nodes/{GONE_NODE}$", found)
    collector = await collect(world, seconds=Q + 1)
    assert collector.metrics.node_checks == {"found": 1}
    assert await world.left() == ["a"]


@in_world
async def test_the_quarantine_begins_when_the_node_is_missed_not_before(world: World) -> None:
    """GC-70."""
    await world.node("existing")
    await make(world, phases("existing", "Succeeded"))
    collector = world.collector()
    async with running(collector):
        await asyncio.sleep(2 * Q)
        await world.delete_node("existing")
        await asyncio.sleep(Q - 1)
        assert await world.left() == ["a"]
        assert not collector.metrics.node_checks


@in_world
async def test_the_quarantine_runs_from_first_sight_and_is_not_extended(world: World) -> None:
    """GC-51: neither by passes nor by more pods on the node."""
    await make(world, phases(GONE_NODE, "Running"))
    async with running(world.collector()):
        for number in range(3):
            await asyncio.sleep(10)
            await make(world, [P(f"later-{number}", node=GONE_NODE)])
        await asyncio.sleep(10.2)
        assert await world.left() == []


@in_world
async def test_one_look_at_the_server_decides_for_all_pods_of_a_node(world: World) -> None:
    """GC-52."""
    await make(world, [P(f"p{number}", node=GONE_NODE) for number in range(5)])
    collector = await collect(world, seconds=Q + 1)
    assert collector.metrics.node_checks == {"gone": 1}
    assert await world.left() == []


@in_world
async def test_after_a_look_that_failed_a_whole_new_quarantine_passes(world: World) -> None:
    """GC-52, GC-53."""
    await make(world, phases(GONE_NODE, "Failed"))
    world.faults.put("GET", f"/nodes/{GONE_NODE}$", answering(403))
    collector = world.collector()
    async with running(collector):
        await asyncio.sleep(Q + 1)
        world.faults.clear()
        assert collector.metrics.node_checks == {"error": 1}
        await asyncio.sleep(Q - 2)
        assert await world.left() == ["a"]
        await asyncio.sleep(2)
        assert await world.left() == []


@in_world
async def test_orphans_go_at_the_same_time_also_those_that_are_terminating(world: World) -> None:
    """GC-54, and better: upstream deletes them one after the other."""
    pods = [P(f"p{number}", "Running", GONE_NODE, is_terminating=number % 2 == 0) for number in range(20)]
    await make(world, pods)
    world.faults.put("DELETE", "/pods/", delaying(1))
    async with running(world.collector()):
        await asyncio.sleep(Q + 2.5)
        assert await world.left() == []


@in_world
async def test_an_orphan_is_told_who_disrupted_it(world: World) -> None:
    """GC-55: with its generation, and the time; GC-120 on the way: it stays because of its finalizer."""
    await make(world, [P("a", "Pending", GONE_NODE, finalizers=("example.com/hold",))])
    await collect(world, seconds=Q + 1)
    pod = await world.get("a")
    [condition] = pod["status"]["conditions"]
    assert condition.pop("lastTransitionTime").startswith("2030-01-01T00:00:4")
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "observedGeneration": 1,
        "lastProbeTime": None,
    }
    assert pod["status"]["observedGeneration"] == 1


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@in_world
async def test_an_orphan_that_has_ended_gets_no_condition(world: World, phase: str) -> None:
    """GC-56."""
    await make(world, [P("a", phase, GONE_NODE, finalizers=("example.com/hold",))])
    await collect(world, seconds=Q + 1)
    pod = await world.get("a")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
    assert pod["status"]["phase"] == phase
    assert "conditions" not in pod["status"]


@in_world
async def test_a_failure_on_one_pod_stops_none_of_the_others(world: World) -> None:
    """GC-57."""
    await make(world, phases(GONE_NODE, "Failed", "Failed", "Running"))
    world.faults.put("DELETE", "/pods/a$", answering(500))
    collector = await collect(world, seconds=Q + 1)
    assert await world.left() == ["a"]
    assert collector.metrics.errors["default", Reason.ORPHANED] > 0


@in_world
async def test_told_to_stop_while_a_node_is_looked_for_no_pod_is_deleted(world: World) -> None:
    """GC-58."""
    await make(world, phases(GONE_NODE, "Failed"))
    world.faults.put("GET", f"/nodes/{GONE_NODE}$", delaying(5))
    collector = await collect(world, seconds=Q + 1)
    assert collector.metrics.node_checks == {"gone": 1}
    assert await world.left() == ["a"]


@in_world
async def test_without_a_quarantine_a_node_is_looked_for_at_once(world: World) -> None:
    """GC-59, GC-71: the conditions that a pod has are kept, the new one is appended; then it is deleted."""
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
        "lastProbeTime": None,
    }
    await world.pod(
        "a", phase="Running", node=GONE_NODE, conditions=[ready], finalizers=("example.com/hold",)
    )
    collector = await collect(world, quarantine_seconds=-1, seconds=0.5)
    status = (await world.get("a"))["status"]
    assert status["phase"] == "Failed"
    assert [condition["type"] for condition in status["conditions"]] == ["Ready", "DisruptionTarget"]
    assert status["conditions"][0] == ready
    assert len(world.faults.sent("DELETE", "/pods/a")) == 1
    assert collector.metrics.node_checks == {"gone": 1}


@in_world
async def test_without_its_gate_no_condition_is_written(world: World) -> None:
    """GC-55 without PodDisruptionConditions: the phase is still written, for jobs."""
    await make(world, [P("a", "Running", GONE_NODE, finalizers=("example.com/hold",))])
    await collect(world, seconds=Q + 1, gates=FeatureGates(pod_disruption_conditions=False))
    status = (await world.get("a"))["status"]
    assert (status["phase"], "conditions" in status) == ("Failed", False)


@in_world
async def test_without_both_gates_nothing_is_marked(world: World) -> None:
    """GC-90 without PodDisruptionConditions and JobPodReplacementPolicy: deleted as it is."""
    await make(world, [P("a", "Running", GONE_NODE, finalizers=("example.com/hold",))])
    gates = FeatureGates(pod_disruption_conditions=False, job_pod_replacement_policy=False)
    await collect(world, seconds=3 * Q, gates=gates)
    assert world.patched() == []
    assert (await world.get("a"))["status"]["phase"] == "Running"
    assert len(world.faults.sent("DELETE", "/pods/a")) == 1
