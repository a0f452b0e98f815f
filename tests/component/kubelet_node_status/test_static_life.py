"""A static pod on a whole agent: from its file to its mirror, its status, its change and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import Object
from podlife.client import NODES, PODS, Client, DeleteOptions
from podlife.daemons.node import check_static_pod
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import FixedMachine, NodeSettings
from podlife.kubelet.runtimes.sim import SimRuntime, SimWorld
from podlife.kubelet.settings import KubeletSettings
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.component.kubelet_node_status.kit import FACTS
from tests.kit.embedded import connect, refusal, start
from tests.kit.wait import until


def text(name: str = "web", image: str = "app:1") -> str:
    container = f"{{name: c, image: {image}}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{container}]}}\n"


class Node:
    def __init__(self, client: Client, agent: Kubelet, machine: SimWorld) -> None:
        self.client = client
        self.agent = agent
        self.machine = machine

    async def pods(self) -> dict[str, Object]:
        found = await self.client.list_all(PODS, "default")
        return {pod["metadata"]["name"]: pod for pod in found.items}

    async def until_running(self, name: str = "web-n1", *, not_uid: str = "") -> Object:
        async def running() -> Object | None:
            pod = (await self.pods()).get(name)
            if pod is None or pod["metadata"]["uid"] == not_uid:
                return None
            return pod if pod["status"]["phase"] == "Running" else None

        return await until(running, seconds=60)

    async def until_idle(self) -> None:
        async def is_idle() -> bool:
            return not (await self.pods() or self.running())

        await until(is_idle)

    def running(self) -> list[tuple[str, str]]:
        """Pod and image of what runs."""
        return [
            (each.sandbox.config.name, each.config.image)
            for each in self.machine.containers.values()
            if each.started_at is not None and each.exit_code is None
        ]


@asynccontextmanager
async def node(folder: Path, *, refuses: list[bool] | None = None) -> AsyncIterator[Node]:
    """With the file `web.yaml`. While the last of `refuses` is True, the server refuses every request of the agent."""
    (folder / "web.yaml").write_text(text())

    async def weather(request: Request, handler: Handler) -> Response:
        return refusal(503) if refuses and refuses[-1] else await handler(request)

    server = await start()
    clock = LoopClock()
    machine = SimWorld(clock)
    failures: list[BaseException] = []
    async with connect(server) as client, connect(server, weather) as own:
        settings = KubeletSettings(
            NodeSettings("n1", addresses=("192.0.2.1",)),
            static_pods=folder,
            check_static_pod=check_static_pod,
        )
        agent = Kubelet(own, SimRuntime(machine), settings, clock, machine=FixedMachine(FACTS))
        task = spawn(agent.run(), name="agent", on_failure=failures.append)
        try:
            yield Node(client, agent, machine)
        finally:
            await cancel_and_wait(task)
    assert not failures


@virtual_time
async def test_a_pod_that_an_api_server_would_refuse_does_not_run_in_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bad.yaml").write_text(text("bad", image="''"))
    async with node(tmp_path) as here:
        await here.until_running()
        assert here.running() == [("web-n1", "app:1")]
        said = f"static pods: {tmp_path / 'bad.yaml'}: spec.containers[0].image: Required value"
        assert said in [each.message for each in caplog.records]


@virtual_time
async def test_a_file_that_says_something_else_is_another_pod(tmp_path: Path) -> None:
    async with node(tmp_path) as here:
        old = await here.until_running()
        (tmp_path / "web.yaml").write_text(text(image="app:2"))
        async with asyncio.timeout(5):
            new = await here.until_running(not_uid=old["metadata"]["uid"])
        assert new["spec"]["containers"][0]["image"] == "app:2"
        assert here.running() == [("web-n1", "app:2")]


@virtual_time
async def test_a_file_that_is_taken_away_ends_its_pod_and_its_mirror(tmp_path: Path) -> None:
    (tmp_path / "db.yaml").write_text(text("db"))
    async with node(tmp_path) as here:
        await here.until_running()
        db = await here.until_running("db-n1")
        (tmp_path / "web.yaml").unlink()
        async with asyncio.timeout(120):
            while len(await here.pods()) > 1 or len(here.running()) > 1:
                await asyncio.sleep(0.1)
        assert (await here.pods())["db-n1"]["metadata"]["uid"] == db["metadata"]["uid"]
        (tmp_path / "db.yaml").unlink()
        await here.until_idle()


@virtual_time
async def test_a_mirror_that_could_not_be_deleted_goes_when_the_server_is_back(tmp_path: Path) -> None:
    refuses = [False]
    async with node(tmp_path, refuses=refuses) as here:
        await here.until_running()
        refuses.append(True)
        (tmp_path / "web.yaml").unlink()
        await until(lambda: not here.running(), seconds=60)
        await asyncio.sleep(60)
        assert await here.pods()
        refuses.append(False)
        async with asyncio.timeout(60):
            await here.until_idle()


@virtual_time
async def test_who_deletes_a_mirror_deletes_no_pod_and_sees_it_again(tmp_path: Path) -> None:
    async with node(tmp_path) as here:
        mirror = await here.until_running()
        (before,) = here.machine.containers
        uid = mirror["metadata"]["uid"]
        await here.client.delete(PODS, "web-n1", "default", options=DeleteOptions(uid=uid))
        # Also the new one is told at once how the pod is.
        async with asyncio.timeout(2):
            await here.until_running(not_uid=uid)
        assert list(here.machine.containers) == [before]
        assert here.running() == [("web-n1", "app:1")]


@virtual_time
async def test_static_pods_run_without_an_api_server_and_are_shown_when_there_is_one(tmp_path: Path) -> None:
    refuses = [True]
    async with node(tmp_path, refuses=refuses) as here:
        await until(here.running, seconds=60)
        assert await here.pods() == {}
        refuses.append(False)
        await here.until_running()
        assert (await here.client.get(NODES, "n1"))["metadata"]["name"] == "n1"
