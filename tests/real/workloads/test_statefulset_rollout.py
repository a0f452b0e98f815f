"""`kubectl rollout` and `kubectl wait` with our StatefulSets' controller at work, on both API servers.

Nodes are played by a stand-in; kubectl is the real one, and its words are what is looked at."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.client import CONTROLLER_REVISIONS, NAMESPACES, STATEFUL_SETS
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.workloads.statefulset import StatefulSetController
from tests.kit.real_parts import Server, kube_apiserver, podlife_apiserver
from tests.real.clients.pair import One, Said, manifest
from tests.real.conftest import require
from tests.workloads.node import UNREADY
from tests.workloads.runs import KubeQuota, at_work, connect, observing
from tests.workloads.scenarios.statefulset import images, stateful_set
from tests.workloads.world import World

_NUMBERS = itertools.count(1)
SET = "statefulset/web"
STATUS = ("rollout", "status", SET, "--timeout=180s")
SECOND = "registry.example/main:2"


@pytest.fixture(scope="module", params=["kube-apiserver", "podlife"])
def server(request: pytest.FixtureRequest, parts_folder: Path) -> Iterator[Server]:
    require("kubectl")
    if request.param == "podlife":
        with podlife_apiserver(parts_folder / "sets-podlife") as started:
            yield started
        return
    require("etcd", "kube-apiserver")
    with kube_apiserver(parts_folder / "sets-kube") as started:
        yield started


class Stage:
    """A namespace in which kubectl is used, with our controller at work."""

    def __init__(self, server: Server, world: World) -> None:
        self.world = world
        self._kubectl = One(server, world.namespace)

    async def __call__(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        return await asyncio.to_thread(self._kubectl, *arguments, code=code, **how)

    async def create(self, replicas: int, **spec: Any) -> None:
        made = {"apiVersion": "apps/v1", "kind": "StatefulSet", **stateful_set("web", replicas, **spec)}
        await self("apply", "-f", "-", stdin=manifest(made))

    async def until_images(self, version: str) -> None:
        """kubectl may have seen that they are of this version before we do."""
        await self.world.until(
            f"pods of {version} alone", lambda: set(images(self.world).values()) == {version}
        )

    async def numbers(self) -> list[str]:
        """Of the revisions that kubectl lists."""
        listed = (await self("rollout", "history", SET)).out.splitlines()
        return [line.split()[0] for line in listed[2:] if line.strip()]


@asynccontextmanager
async def open_stage(server: Server) -> AsyncIterator[Stage]:
    namespace = f"sets-{next(_NUMBERS)}"
    async with (
        connect(server.kubeconfig) as client,
        connect(server.kubeconfig) as controllers,
        observing(client, KubeQuota(client)) as cluster,
    ):
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        world = World(cluster, namespace)
        plane = ControlPlane(controllers, clock=SystemClock())
        plane.add(StatefulSetController(plane))
        async with at_work(world.node.run), at_work(plane.run):
            yield Stage(server, world)


async def test_rollouts_are_followed_listed_and_undone_as_kubectl_does(server: Server) -> None:
    async with open_stage(server) as stage:
        await stage.create(3)
        said = await stage(*STATUS)
        assert "partitioned roll out complete: 3 new pods have been updated" in said.out
        shown = (await stage("get", SET, "--no-headers")).out.split()
        assert shown[:2] == ["web", "3/3"]
        await stage("set", "image", SET, f"main={SECOND}")
        await stage("annotate", SET, "kubernetes.io/change-cause=a newer one")
        said = await stage(*STATUS)
        assert "partitioned roll out complete: 3 new pods have been updated" in said.out
        await stage.until_images("2")
        assert await stage.numbers() == ["1", "2"]
        assert "registry.example/main:1" in (await stage("rollout", "history", SET, "--revision=1")).out
        await stage("rollout", "undo", SET)
        await stage(*STATUS)
        await stage.until_images("1")
        assert await stage.numbers() == ["2", "3"]
        before = {pod["metadata"]["uid"] for pod in stage.world.pods()}
        await stage("rollout", "restart", SET)
        await stage(*STATUS)
        await stage.world.until(
            "others in their place",
            lambda: not before & {pod["metadata"]["uid"] for pod in stage.world.pods()},
        )
        await stage.world.until("a third revision", lambda: len(stage.world.all(CONTROLLER_REVISIONS)) == 3)


async def test_a_rollout_that_does_not_come_on_is_not_said_to_be_done(server: Server) -> None:
    async with open_stage(server) as stage:
        await stage.create(2)
        await stage(*STATUS)
        stage.world.node.let(UNREADY, lambda pod: pod["spec"]["containers"][0]["image"] == SECOND)
        await stage("set", "image", SET, f"main={SECOND}")
        half = {"web-0": "1", "web-1": "2"}
        await stage.world.until("half of it rolled out", lambda: images(stage.world) == half)
        said = await stage("rollout", "status", SET, "--timeout=5s", code=1)
        assert "Waiting for" in said.out
        assert images(stage.world) == half


async def test_waits_and_scales_end_when_the_status_says_so(server: Server) -> None:
    async with open_stage(server) as stage:
        await stage.create(1, podManagementPolicy="Parallel")
        await stage("wait", SET, "--for=jsonpath={.status.readyReplicas}=1", "--timeout=180s")
        await stage("scale", SET, "--replicas=4")
        await stage("wait", SET, "--for=jsonpath={.status.availableReplicas}=4", "--timeout=180s")
        await stage("delete", "pod", "web-2", "--wait=true", "--timeout=180s")
        await stage("wait", "pod/web-2", "--for=create", "--timeout=180s")
        await stage("wait", "pod/web-2", "--for=condition=Ready", "--timeout=180s")
        await stage("scale", SET, "--replicas=0")
        await stage.world.until_status(STATEFUL_SETS, "web", replicas=0)
        await stage.world.until("no pods", lambda: stage.world.pods() == [])
