"""`kubectl rollout` and `kubectl wait` with our StatefulSets' controller at work, on both API servers.

Nodes are played by a stand-in; kubectl is the real one, and its words are what is looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.client import CONTROLLER_REVISIONS, STATEFUL_SETS
from podlife.workloads.statefulset import StatefulSetController
from tests.kit.real_parts import Server
from tests.real.clients.pair import manifest
from tests.real.workloads.kubectl_stage import KubectlStage, open_stage, ours
from tests.workloads.node import UNREADY
from tests.workloads.scenarios.statefulset import images, stateful_set

SET = "statefulset/web"
STATUS = ("rollout", "status", SET, "--timeout=180s")
SECOND = "registry.example/main:2"


class Stage(KubectlStage):
    async def create(self, replicas: int, **spec: Any) -> None:
        made = {"apiVersion": "apps/v1", "kind": "StatefulSet", **stateful_set("web", replicas, **spec)}
        await self("apply", "-f", "-", stdin=manifest(made))

    async def until_images(self, version: str) -> None:
        """kubectl may have seen that they are of this version before we do."""
        await self.world.until(
            f"pods of {version} alone", lambda: set(images(self.world).values()) == {version}
        )

    async def numbers(self) -> list[str]:
        return [line[0] for line in await self.history(SET)]


@asynccontextmanager
async def at_work_on(server: Server) -> AsyncIterator[Stage]:
    async with open_stage(server, Stage) as stage, ours(server, StatefulSetController):
        yield stage


async def test_rollouts_are_followed_listed_and_undone_as_kubectl_does(server: Server) -> None:
    async with at_work_on(server) as stage:
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
    async with at_work_on(server) as stage:
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
    async with at_work_on(server) as stage:
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
