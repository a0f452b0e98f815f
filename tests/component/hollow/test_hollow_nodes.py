"""A fleet on the embedded server, under virtual time: what its pods and nodes come to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.client import LEASES, NODES, PODS, Bookmark, Client, DeleteOptions, EventType
from podlife.errors import NotFoundError
from podlife.kubelet.hollow import (
    HollowNodes,
    HollowSettings,
    create_pods,
    delete_nodes,
    delete_pods,
    parse_scenario,
    percentile,
)
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit import embedded
from tests.kit.objects import container, pod
from tests.kit.wait import until


@asynccontextmanager
async def running(
    nodes: int, scenario: str = "", *, disturb: embedded.Disturbance | None = None, **more: Any
) -> AsyncIterator[tuple[HollowNodes, Client]]:
    client = embedded.connect(await embedded.start(), disturb)
    fleet = HollowNodes(client, HollowSettings(nodes, **more), LoopClock(), parse_scenario(scenario))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(fleet.run())
        await until(lambda: fleet.ready == nodes)
        yield fleet, client
        task.cancel()


async def create(client: Client, name: str, node: str = "sim-0", **more: Any) -> None:
    await client.create(PODS, pod(name, nodeName=node, **more), "default")


async def create_many(fleet: HollowNodes, client: Client, count: int) -> None:
    await create_pods(client, "default", "r", list(fleet.nodes), count, lambda *_: None)
    await until(lambda: fleet.tally.phases == {"Running": count})


async def status_of(client: Client, name: str) -> Object:
    return dict((await client.get(PODS, name, "default"))["status"])


@virtual_time
async def test_pods_run_on_the_nodes_they_are_given_to_and_go_when_they_are_deleted() -> None:
    async with running(3) as (fleet, client):
        await create_many(fleet, client, 30)
        pods = (await client.list_all(PODS, "default")).items
        assert {each["spec"]["nodeName"] for each in pods} == {"sim-0", "sim-1", "sim-2"}
        assert all(each["status"]["containerStatuses"][0]["ready"] for each in pods)
        await client.delete(PODS, "r-7", "default")
        await until(lambda: fleet.tally.gone == 1)
        with pytest.raises(NotFoundError):
            await client.get(PODS, "r-7", "default")


async def phases_until_gone(client: Client, name: str) -> list[str]:
    """The phases that a pod shows from its deletion to its end."""
    seen = []
    async with aclosing(client.list_watch(PODS, "default")) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                if event.is_synced:
                    await client.delete(PODS, name, "default")
                continue
            seen.append(event.object["status"]["phase"])
            if event.type is EventType.DELETED:
                break
    return list(dict.fromkeys(seen))


@virtual_time
async def test_a_deleted_pod_tells_how_it_ended_before_it_goes_unless_ends_are_quick() -> None:
    for quick, phases in ((False, ["Running", "Failed"]), (True, ["Running"])):
        async with running(1, tells_ends=not quick) as (fleet, client):
            await create(client, "p")
            await until(lambda fleet=fleet: fleet.tally.phases == {"Running": 1})
            assert await phases_until_gone(client, "p") == phases


@virtual_time
async def test_a_pod_that_comes_to_run_at_once_is_told_of_once() -> None:
    patches: Counter[str] = Counter()

    async def count(request: Request, handler: Handler) -> Response:
        if request.method == "PATCH" and "/pods/" in request.path:
            patches[request.path] += 1
        return await handler(request)

    async with running(1, disturb=count) as (fleet, client):
        await create_many(fleet, client, 20)
        await asyncio.sleep(60)
    assert len(patches) == 20
    assert set(patches.values()) == {1}


@virtual_time
async def test_a_pod_that_starts_slowly_is_told_of_while_it_does() -> None:
    async with running(1, "pods: [{start: 60s}]") as (fleet, client):
        await create(client, "p")
        await asyncio.sleep(5)
        status = await status_of(client, "p")
        assert status["phase"] == "Pending"
        assert status["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        await until(lambda: fleet.tally.phases == {"Running": 1}, seconds=120)


@virtual_time
async def test_the_way_to_running_is_counted_from_when_a_pod_was_asked_for() -> None:
    async with running(1, "pods: [{start: {after: 2s, jitter: 2s}}]") as (fleet, client):
        loop = asyncio.get_running_loop()

        def ask(namespace: str, name: str) -> None:
            fleet.tally.ask(namespace, name, loop.time())

        await create_pods(client, "default", "r", ["sim-0"], 20, ask)
        await until(lambda: fleet.tally.phases == {"Running": 20})
        assert len(fleet.tally.start_seconds) == 20
        half, most = (percentile(fleet.tally.start_seconds, part) for part in (0.5, 0.99))
        assert 2 <= half <= most < 5


@virtual_time
async def test_an_image_takes_its_time_once_and_is_there_for_the_next_pod() -> None:
    async with running(1, "images: [{name: 'large/*', pull: 30s}]") as (fleet, client):
        large = [container(image="large/app:1")]
        await create(client, "first", containers=large)
        await asyncio.sleep(20)
        assert (await status_of(client, "first"))["phase"] == "Pending"
        await until(lambda: fleet.tally.phases == {"Running": 1})
        await create(client, "second", containers=large)
        await until(lambda: fleet.tally.phases == {"Running": 2}, seconds=5)


@virtual_time
async def test_pods_of_other_nodes_are_none_of_its_concern() -> None:
    async with running(2) as (fleet, client):
        await create(client, "mine", "sim-1")
        await create(client, "theirs", "elsewhere")
        await until(lambda: fleet.tally.phases == {"Running": 1})
        await asyncio.sleep(30)
        assert (fleet.tally.seen, (await status_of(client, "theirs"))["phase"]) == (1, "Pending")


@virtual_time
async def test_a_pod_with_a_wrong_annotation_is_told_so() -> None:
    async with running(1) as (_, client):
        await create(client, "p", metadata={"annotations": {"sim.podlife.dev/crsh": "1s"}})
        await asyncio.sleep(5)
        waiting = (await status_of(client, "p"))["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerError"
        assert "unknown annotation sim.podlife.dev/crsh" in waiting["message"]


async def renewed_at(client: Client, node: str) -> str:
    return str((await client.get(LEASES, node, "kube-node-lease"))["spec"]["renewTime"])


@virtual_time
async def test_a_silent_agent_renews_no_lease_and_goes_on_with_its_pods_when_it_returns() -> None:
    async with running(2, "nodes: [{names: sim-0, at: 60s, for: 100s}]") as (fleet, client):
        await create(client, "p")
        await until(lambda: fleet.tally.phases == {"Running": 1})
        before = (await status_of(client, "p"))["containerStatuses"][0]["containerID"]
        await until(lambda: fleet.tally.away == 1, seconds=120)
        silent = await renewed_at(client, "sim-0")
        other = await renewed_at(client, "sim-1")
        await client.delete(PODS, "p", "default", options=DeleteOptions(grace_period_seconds=30))
        await asyncio.sleep(60)
        assert await renewed_at(client, "sim-0") == silent
        assert await renewed_at(client, "sim-1") > other
        assert (await status_of(client, "p"))["containerStatuses"][0]["containerID"] == before
        await until(lambda: fleet.tally.away == 0, seconds=120)
        await until(lambda: fleet.tally.gone == 1)
        assert fleet.tally.outages == 1


@virtual_time
async def test_a_machine_that_was_off_starts_its_pods_anew() -> None:
    async with running(1, "nodes: [{at: 60s, for: 10s, what: machine}]") as (fleet, client):
        await create(client, "p")
        await until(lambda: fleet.tally.phases == {"Running": 1})
        boot = (await client.get(NODES, "sim-0"))["status"]["nodeInfo"]["bootID"]
        await until(lambda: fleet.tally.outages == 1 and fleet.tally.away == 0, seconds=120)
        await until(lambda: fleet.tally.restarts == 1)
        assert (await client.get(NODES, "sim-0"))["status"]["nodeInfo"]["bootID"] != boot
        await until(lambda: fleet.tally.phases == {"Running": 1})


@virtual_time
async def test_what_a_run_has_made_is_taken_away_and_nothing_else() -> None:
    async with running(2) as (fleet, client):
        await create(client, "mine")
        await create_pods(client, "default", "r", list(fleet.nodes), 5, lambda *_: None)
        await until(lambda: fleet.tally.phases == {"Running": 6})
        await until(lambda: all(node.uid for node in fleet.nodes.values()))
        nodes = [(node.name, node.uid) for node in fleet.nodes.values()]
    assert await delete_pods(client, "default", "r") == 5
    await delete_nodes(client, nodes)
    assert [each["metadata"]["name"] for each in (await client.list_all(PODS, "default")).items] == ["mine"]
    assert (await client.list_all(NODES)).items == []
    assert (await client.list_all(LEASES, "kube-node-lease")).items == []


@virtual_time
async def test_a_node_takes_no_more_pods_than_it_has_room_for() -> None:
    async with running(1, max_pods=3) as (fleet, client):
        await create_pods(client, "default", "r", ["sim-0"], 5, lambda *_: None)
        await until(lambda: fleet.tally.phases == {"Running": 3, "Failed": 2})
