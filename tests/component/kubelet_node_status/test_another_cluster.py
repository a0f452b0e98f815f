"""An API server that lost its data, or serves another cluster, ends no pod of the nodes that had joined before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podlife.aio import cancel_and_wait
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import NODES, PODS
from podlife.client.refs import SERVICES
from podlife.clock import Clock
from podlife.errors import NotFoundError
from podlife.kubelet.hollow import HollowNodes, HollowSettings
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import CLUSTER_FILE, AnotherClusterError, ClusterMembership, NodeSettings
from podlife.kubelet.node_status.membership import is_another_cluster
from podlife.kubelet.runtime import ContainerState, Runtime
from podlife.kubelet.runtimes.sim import SimRuntime, SimWorld
from podlife.kubelet.settings import KubeletSettings
from podlife.testing import LoopClock, virtual_time
from podlife.testing.fault_injection import FaultInjection
from podlife.wire import Handler, Request, Response
from tests.component.kubelet.node_world import MACHINE, pod
from tests.kit.embedded import Disturbance, connect, refusal, start
from tests.kit.wait import until


class Place:
    """An address at which one cluster is served after the other."""

    def __init__(self, handler: ApiHandler, disturb: Disturbance | None = None) -> None:
        self.now = handler
        self.faults = FaultInjection("place", self._answer)
        self._disturb = disturb

    async def _answer(self, request: Request) -> Response:
        return await (self.now(request) if self._disturb is None else self._disturb(request, self.now))

    def serve(self, handler: ApiHandler) -> None:
        self.now = handler
        self.faults.break_watches()


class Node:
    def __init__(self, place: Place, runtime: Runtime, clock: Clock, folder: Path) -> None:
        self.client = connect(place.faults)
        self.file = folder / CLUSTER_FILE
        node = NodeSettings("n1", addresses=("192.0.2.1",), renew_seconds=1.0, check_seconds=1.0)
        self.agent = Kubelet(self.client, runtime, KubeletSettings(node, data=folder), clock, machine=MACHINE)
        self._runtime = runtime

    async def running(self) -> int:
        return sum(each.state is ContainerState.RUNNING for each in await self._runtime.list_containers())

    async def until_running(self, count: int) -> None:
        async def are_running() -> bool:
            return await self.running() == count

        await until(are_running, seconds=60)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.get_running_loop().create_task(self.agent.run())
        try:
            yield task
        finally:
            await cancel_and_wait(task)


class Warnings:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, "podlife.kubelet")
        self._caplog = caplog

    async def until(self, module: str, times: int = 1) -> str:
        """The module of the agent has said so often that this is another cluster."""
        await until(lambda: len(self._said(module)) >= times)
        return self._said(module)[-1]

    def _said(self, module: str) -> list[str]:
        return [
            each.getMessage()
            for each in self._caplog.records
            if each.name == f"podlife.kubelet.{module}" and "serves another cluster" in each.getMessage()
        ]


async def as_kube_apiserver(request: Request, handler: Handler) -> Response:
    """A node may not read namespaces there."""
    if request.path == "/api/v1/namespaces/kube-system":
        return refusal(403, "Forbidden")
    return await handler(request)


async def with_service(handler: ApiHandler) -> ApiHandler:
    async with connect(handler) as client:
        service = {"metadata": {"name": "kubernetes"}, "spec": {"ports": [{"port": 443}]}}
        await client.create(SERVICES, service, "default")
    return handler


async def cluster() -> ApiHandler:
    return await with_service(await start())


def sim(place: Place, folder: Path) -> Node:
    clock = LoopClock()
    return Node(place, SimRuntime(SimWorld(clock, ips=("10.0.0.7",))), clock, folder)


async def kept(place: Place, node: Node, warnings: Warnings) -> None:
    """The server is replaced by an empty one under a running agent, and comes back."""
    first, other = place.now, await cluster()
    async with node.begun() as serving:
        async with connect(first) as client:
            made = pod(containers=[{"name": "main", "image": "i", "command": ["sleep", "1000"]}])
            await client.create(PODS, made, "default")
        await node.until_running(1)
        await node.agent.reporter.registered.wait()
        place.serve(other)
        await warnings.until("node_status.lease")
        said = await warnings.until("config.api", 2)
        assert f"remove {node.file} to accept this cluster" in said
        assert await node.running() == 1
        async with connect(other) as client:
            assert [each["metadata"]["name"] for each in (await client.list_all(NODES)).items] == []
        place.serve(first)
        async with connect(first) as client:
            await client.delete(PODS, "web", "default")
        await node.until_running(0)
        assert not serving.done()


async def moved_to_another_cluster(folder: Path) -> tuple[Place, Node]:
    """An agent was stopped while its pod runs; when it comes back, another cluster is served at its address."""
    place = Place(await cluster())
    node = sim(place, folder)
    async with node.begun():
        async with connect(place.now) as client:
            await client.create(PODS, pod(), "default")
        await node.until_running(1)
    place.serve(await cluster())
    return place, node


@pytest.mark.parametrize("is_restricted", [False, True])
@virtual_time
async def test_simulated_containers_outlive_a_server_that_lost_its_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_restricted: bool
) -> None:
    place = Place(await cluster(), as_kube_apiserver if is_restricted else None)
    await kept(place, sim(place, tmp_path), Warnings(caplog))


@virtual_time
async def test_an_agent_that_starts_on_another_cluster_ends_before_it_touches_a_pod(tmp_path: Path) -> None:
    place, node = await moved_to_another_cluster(tmp_path)
    again = Node(place, node._runtime, LoopClock(), tmp_path)
    async with again.begun() as task:
        with pytest.raises(AnotherClusterError, match=f"remove {again.file} to accept this cluster"):
            await task
    assert await again.running() == 1


@virtual_time
async def test_removing_the_file_accepts_the_new_cluster(tmp_path: Path) -> None:
    place, node = await moved_to_another_cluster(tmp_path)
    node.file.unlink()
    again = Node(place, node._runtime, LoopClock(), tmp_path)
    async with again.begun():
        await again.until_running(0)


@virtual_time
async def test_pods_of_a_fleet_outlive_a_server_that_lost_its_data(caplog: pytest.LogCaptureFixture) -> None:
    first, other = await cluster(), await cluster()
    place = Place(first)
    async with connect(place.faults) as own, connect(first) as client, connect(other) as elsewhere:
        fleet = HollowNodes(own, HollowSettings(2), LoopClock())
        task = asyncio.get_running_loop().create_task(fleet.run())
        await client.create(PODS, {**pod(), "spec": {**pod()["spec"], "nodeName": "sim-0"}}, "default")
        await until(lambda: fleet.tally.phases == {"Running": 1})
        place.serve(other)
        await Warnings(caplog).until("node_status.lease")
        await asyncio.sleep(600)
        assert fleet.tally.phases == {"Running": 1}
        assert (await elsewhere.list_all(NODES)).items == []
        place.serve(first)
        await client.delete(PODS, "web", "default")
        await until(lambda: not fleet.tally.phases)
        await cancel_and_wait(task)


@virtual_time
async def test_a_node_that_was_deleted_registers_again_and_so_does_one_whose_service_was_made_again(
    tmp_path: Path,
) -> None:
    place = Place(await cluster(), as_kube_apiserver)
    async with connect(place.now) as client:
        for ref, name, namespace in ((NODES, "n1", ""), (SERVICES, "kubernetes", "default")):
            node = sim(place, tmp_path)
            async with node.begun():
                await until(node.agent.reporter.registered.is_set)
            await client.delete(ref, name, namespace)
            if ref is SERVICES:
                await with_service(place.now)
        node = sim(place, tmp_path)
        async with node.begun():
            await until(node.agent.reporter.registered.is_set)


@virtual_time
async def test_those_who_ask_together_share_a_check_that_began_after_they_asked() -> None:
    first, other = await cluster(), await cluster()
    asked: list[str] = []
    may_answer = asyncio.Event()

    async def slow(request: Request, handler: Handler) -> Response:
        asked.append(request.path)
        await may_answer.wait()
        return await place.now(request)

    place = Place(first)
    async with connect(first, slow) as client:
        membership = ClusterMembership(client)
        may_answer.set()
        await membership.check()
        may_answer.clear()
        asked.clear()
        loop = asyncio.get_running_loop()
        early = loop.create_task(membership.check())
        await asyncio.sleep(1)
        late = [loop.create_task(membership.check()) for _ in range(10)]
        await asyncio.sleep(1)
        may_answer.set()
        await asyncio.gather(early, *late)
        assert len(asked) == 2
        # What has passed says nothing to those who ask later.
        place.serve(other)
        with pytest.raises(AnotherClusterError):
            await membership.check()


@virtual_time
async def test_a_proxy_that_knows_no_such_page_is_not_another_cluster(tmp_path: Path) -> None:
    handler = await cluster()
    async with connect(handler) as client:
        await ClusterMembership(client, "n1", tmp_path / CLUSTER_FILE).check()

    async def lost(request: Request, handler: Handler) -> Response:
        return Response(404, b"<html>nothing here</html>")

    async with connect(handler, lost) as client:
        with pytest.raises(NotFoundError):
            await ClusterMembership(client, "n1", tmp_path / CLUSTER_FILE).check()


SYSTEM, SERVICE, OWN = "namespace/kube-system", "service/default/kubernetes", "node"


@pytest.mark.parametrize(
    ("known", "found", "expected"),
    [
        ({}, {SYSTEM: "a"}, False),
        ({SYSTEM: "a"}, {SYSTEM: "a"}, False),
        ({SYSTEM: "a"}, {SYSTEM: "b"}, True),
        ({SYSTEM: "a"}, {SYSTEM: ""}, True),
        ({SYSTEM: "a", OWN: "n"}, {SYSTEM: "b", OWN: "n"}, True),
        ({SYSTEM: "a"}, {SERVICE: "b"}, False),
        ({SERVICE: "s", OWN: "n"}, {SERVICE: "t", OWN: "n"}, False),
        ({SERVICE: "s", OWN: "n"}, {SERVICE: "s", OWN: "m"}, False),
        ({SERVICE: "s", OWN: "n"}, {SERVICE: "t", OWN: "m"}, True),
        ({SERVICE: "s", OWN: "n"}, {SERVICE: "t", OWN: ""}, True),
        ({SYSTEM: "a", OWN: "n"}, {SERVICE: "s", OWN: ""}, True),
        ({SYSTEM: "a", OWN: "n"}, {SERVICE: "s", OWN: "n"}, False),
        ({OWN: "n"}, {OWN: ""}, False),
        ({OWN: "n"}, {OWN: "m"}, False),
    ],
)
def test_which_uids_make_another_cluster(
    known: dict[str, str], found: dict[str, str], expected: bool
) -> None:
    assert is_another_cluster(known, found) is expected
