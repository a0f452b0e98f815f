"""Every daemon, run from Python without the command line, against an API server daemon in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podlife.apiserver.server import ServingInfo
from podlife.apiserver.settings import ApiServerSettings
from podlife.client import LEASES, NODES, PODS, REPLICA_SETS, Client, Connection, Flags, load
from podlife.daemons import apiserver, controllers, gc, node, simulation
from podlife.daemons.service import ElectionSettings, ServiceSettings
from podlife.errors import NotFoundError, PodlifeError
from podlife.kubelet.hollow import HollowNodes
from podlife.podgc import Settings as CollectorSettings
from tests.kit.wait import until

CONTAINERS = [{"name": "c", "image": "app"}]


class Stop:
    """A shutdown that a test can trigger."""

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None

    @contextmanager
    def __call__(self, stop: Callable[[], None]) -> Iterator[None]:
        self._stop = stop
        yield

    def trigger(self) -> None:
        assert self._stop is not None, "the daemon does not wait for it yet"
        self._stop()


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Connection]:
    ready: asyncio.Future[ServingInfo] = asyncio.get_running_loop().create_future()
    stop, settings = Stop(), ApiServerSettings(data=tmp_path / "apiserver", in_memory=True, port=0)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(apiserver.run(settings, on_ready=ready.set_result, shutdown=stop))
        yield load(Flags(kubeconfig=str((await ready).kubeconfig())))
        stop.trigger()


@pytest.fixture
async def client(connection: Connection) -> AsyncIterator[Client]:
    async with Client.connect(connection) as client:
        yield client


async def test_gc_collects_an_orphan_and_releases_its_lease(connection: Connection, client: Client) -> None:
    pod = {"metadata": {"name": "orphan"}, "spec": {"nodeName": "gone", "containers": CONTAINERS}}
    await client.create(PODS, pod, "default")
    ready, stop = asyncio.Event(), Stop()
    service = ServiceSettings(connection, ElectionSettings("gc"), listen=("127.0.0.1", 0))
    settings = gc.GcDaemonSettings(service, CollectorSettings(quarantine_seconds=0.0, period_seconds=0.1))

    async def is_collected() -> bool:
        try:
            await client.get(PODS, "orphan", "default")
        except NotFoundError:
            return True
        return False

    async with asyncio.TaskGroup() as group:
        group.create_task(gc.run(settings, on_ready=ready.set, shutdown=stop))
        await ready.wait()
        await until(is_collected)
        assert (await client.get(LEASES, "gc", "kube-system"))["spec"]["holderIdentity"]
        stop.trigger()
    assert not (await client.get(LEASES, "gc", "kube-system"))["spec"].get("holderIdentity")


async def test_controllers_run_those_that_are_named_until_they_are_cancelled(
    connection: Connection, client: Client
) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await client.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec}, "default")
    settings = controllers.ControllersSettings(
        ServiceSettings(connection), ["replicaset"], {"replicaset-controller": {"workers": 1}}
    )

    async def has_pods() -> bool:
        return len((await client.list_all(PODS, "default")).items) == 2

    async with asyncio.TaskGroup() as group:
        running = group.create_task(controllers.run(settings))
        await until(has_pods)
        running.cancel()


async def test_a_node_registers_and_one_agent_at_a_time_has_its_directory(
    connection: Connection, client: Client, tmp_path: Path
) -> None:
    runtime = node.RuntimeSettings(tmp_path / "n1", "sim")
    settings = node.NodeDaemonSettings(
        "n1", connection, runtime, listen=("127.0.0.1", 0), address="127.0.0.1"
    )
    stop = Stop()

    async def is_ready() -> bool:
        found = (await client.list_all(NODES)).items
        return any(
            each["type"] == "Ready" and each["status"] == "True"
            for one in found
            for each in (one.get("status") or {}).get("conditions") or ()
        )

    async with asyncio.TaskGroup() as group:
        group.create_task(node.run(settings, shutdown=stop))
        await until(is_ready)
        with pytest.raises(PodlifeError, match="another node agent uses"):
            await node.run(settings)
        stop.trigger()


class Report:
    """What a simulation reports; it is stopped when its pods are created."""

    def __init__(self, stop: Stop) -> None:
        self.said: list[str] = []
        self._stop = stop

    async def show_progress(self, fleet: HollowNodes) -> None:
        await asyncio.Event().wait()

    def nodes_ready(self) -> None:
        self.said.append("nodes ready")

    def pods_created(self) -> None:
        self.said.append("pods created")
        self._stop.trigger()

    def out_of_time(self, created: int) -> None:
        self.said.append(f"{created} created in time")

    def cleaning_up(self) -> None:
        self.said.append("cleaning up")

    def left_behind(self, reason: str, run_name: str) -> None:
        self.said.append(f"left behind: {reason}")

    def finished(self, fleet: HollowNodes, created: int, seconds: float) -> None:
        self.said.append(f"{created} pods on {len(fleet.nodes)} nodes")


async def test_a_simulation_reports_its_steps_and_deletes_what_it_made(
    connection: Connection, client: Client
) -> None:
    settings = simulation.SimulationDaemonSettings(connection, simulation.SimulationSettings(nodes=2, pods=3))
    stop = Stop()
    report = Report(stop)
    await simulation.run(settings, report, shutdown=stop)
    assert report.said == ["nodes ready", "pods created", "cleaning up", "3 pods on 2 nodes"]
    assert not (await client.list_all(NODES)).items
    assert not (await client.list_all(PODS, "default")).items


async def test_a_server_that_is_not_there_is_a_podlife_error() -> None:
    nowhere = ServiceSettings(Connection("http://127.0.0.1:1"), request_timeout_seconds=0.2)
    with pytest.raises(PodlifeError):
        await gc.run(gc.GcDaemonSettings(nowhere))
