"""`podlife explain node`: what is the matter with a node, what that means for its pods, and what helps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from podlife.cli.commands.explain.output import format_explanation
from podlife.client import NODES, PODS, PatchType
from podlife.diagnosis import look_at_node
from podlife.errors import NotFoundError
from podlife.explain import Explanation
from podlife.testing import Cluster, virtual_time
from tests.component.explain.kubectl_words import type_in
from tests.component.stories.objects import OUT_OF_SERVICE, condition, pod

HEALTH = ("node-lifecycle", "taint-eviction", "pod-garbage-collector")
Object = dict[str, Any]


async def change(cluster: Cluster, patch: Object, subresource: str = "") -> None:
    await cluster.client.patch(NODES, "n1", patch, type=PatchType.STRATEGIC, subresource=subresource)
    await cluster.advance(seconds=5)


async def cordoned(cluster: Cluster) -> None:
    await change(cluster, {"spec": {"unschedulable": True}})


async def dead(cluster: Cluster) -> None:
    await cluster.node("n1").power_off()
    await cluster.advance(seconds=75)


async def silent(cluster: Cluster) -> None:
    await cluster.controllers.kill("node-lifecycle")
    await cluster.node("n1").stop()
    await cluster.advance(seconds=75)


async def back_and_still_out_of_service(cluster: Cluster) -> None:
    await change(cluster, {"spec": {"taints": [OUT_OF_SERVICE]}})


async def without_network(cluster: Cluster) -> None:
    told = {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}
    await change(cluster, {"status": {"conditions": [told]}}, "status")


async def uninitialised(cluster: Cluster) -> None:
    taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
    await change(cluster, {"spec": {"taints": [taint]}})


async def held(cluster: Cluster) -> None:
    await change(cluster, {"metadata": {"finalizers": ["example.com/machine"]}})
    uid = (await cluster.client.get(NODES, "n1"))["metadata"]["uid"]
    await cluster.node("n1").stop()
    await cluster.client.request("DELETE", NODES.path("", "n1"), body={"preconditions": {"uid": uid}})


def is_so(look: Callable[[Object], object]) -> Callable[[Cluster], Awaitable[bool]]:
    async def holds(cluster: Cluster) -> bool:
        return bool(look(await cluster.client.get(NODES, "n1")))

    return holds


def has_no_taints(node: Object) -> bool:
    return not node["spec"].get("taints")


async def is_gone(cluster: Cluster) -> bool:
    try:
        await cluster.client.get(NODES, "n1")
    except NotFoundError:
        return True
    return False


async def has_no_pods(cluster: Cluster) -> bool:
    return not (await cluster.client.list(PODS, "default")).items


@dataclass(frozen=True)
class Case:
    cause: str
    make: Callable[[Cluster], Awaitable[None]]
    is_unblocked: Callable[[Cluster], Awaitable[bool]]
    is_stuck: bool = True


CASES = (
    Case("cordoned", cordoned, is_so(lambda node: not node["spec"].get("unschedulable")), is_stuck=False),
    Case("not-ready", dead, has_no_pods),
    Case("kubelet-silent", silent, is_so(lambda node: node["spec"].get("unschedulable"))),
    Case("still-out-of-service", back_and_still_out_of_service, is_so(has_no_taints)),
    Case(
        "network-unavailable",
        without_network,
        is_so(lambda node: condition(node, "NetworkUnavailable")["status"] == "False"),
    ),
    Case("uninitialized", uninitialised, is_so(has_no_taints)),
    Case("finalizer", held, is_gone),
)


async def explained(cluster: Cluster, name: str = "n1") -> Explanation:
    return await look_at_node(cluster.client, cluster.clock, name)


@pytest.mark.parametrize("case", CASES, ids=[case.cause for case in CASES])
def test_the_cause_is_found_and_the_command_helps(case: Case) -> None:
    @virtual_time
    async def played() -> None:
        async with Cluster(nodes=2, controllers=HEALTH) as cluster:
            await cluster.client.create(PODS, pod(), "default")
            await cluster.settled()
            await case.make(cluster)
            assert not await case.is_unblocked(cluster)
            found = await explained(cluster)
            assert (found.causes[0].name, found.causes[0].is_stuck) == (case.cause, case.is_stuck), found
            await type_in(cluster.client, found.causes[0].remedies[0].command)
            await cluster.until(lambda: case.is_unblocked(cluster), within=120)

    played()


@virtual_time
async def test_a_dead_node_tells_when_its_first_pod_has_to_go_and_which_pods_are_held() -> None:
    async with Cluster(nodes=2, controllers=HEALTH) as cluster:
        for name in ("web", "cache"):
            await cluster.client.create(PODS, pod(name), "default")
        await cluster.settled()
        await dead(cluster)
        found = await explained(cluster)
        assert "not ready (Unknown)" in found.stage
        assert "2 pods" in found.stage
        [leaving] = found.upcoming
        assert leaving.who == "taint eviction"
        assert leaving.at is not None
        assert leaving.what.startswith("deletes 2 of its pods")
        assert [cause.name for cause in found.causes[1:]] == ["pod-node-not-ready"] * 2
        # What was foretold comes about, to within the look of the node monitor.
        await cluster.advance(seconds=(leaving.at - cluster.clock.now()).total_seconds() + 15)
        pods = (await cluster.client.list(PODS, "default")).items
        assert all("deletionTimestamp" in each["metadata"] for each in pods)


@virtual_time
async def test_a_node_that_is_gone_still_has_the_pods_that_say_so() -> None:
    async with Cluster(controllers=()) as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        await cluster.node("n1").remove()
        found = await explained(cluster)
        assert found.stage == "not there"
        assert [cause.name for cause in found.causes] == ["pod-node-gone"]
        assert "pod default/web" in format_explanation(found, "text", cluster.clock.now())


@virtual_time
async def test_a_node_that_is_well_has_nothing_to_tell() -> None:
    async with Cluster(controllers=()) as cluster:
        await cluster.client.create(PODS, pod(), "default")
        await cluster.settled()
        found = await explained(cluster)
        assert (found.stage, found.causes, found.upcoming) == ("ready, 1 pod", (), ())
        assert "Nothing holds it up." in format_explanation(found, "text", cluster.clock.now())
