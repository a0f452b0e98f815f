"""`kubectl rollout` with our DaemonSets' controller at work, and kube-controller-manager's before and after it, on
both API servers. Nodes are played by a stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podlife.client import CONTROLLER_REVISIONS, DAEMON_SETS
from podlife.workloads.daemonset import DaemonSetController
from tests.kit.real_parts import Server, controller_manager
from tests.real.conftest import require
from tests.real.workloads.kubectl_stage import KubectlStage, open_stage, ours
from tests.workloads.scenarios.daemonset import AGENT, daemon, images, node, serves

SET = f"daemonset/{AGENT}"
STATUS = ("rollout", "status", SET, "--timeout=180s")
FIRST, SECOND, THIRD = (f"registry.example/main:{number}" for number in (1, 2, 3))


class Stage(KubectlStage):
    async def roll_out(self, image: str) -> None:
        if self.world.find(DAEMON_SETS, AGENT) is None:
            await self.world.create(DAEMON_SETS, daemon(self.world, image=image))
        else:
            await self("set", "image", SET, f"main={image}")
        await self.is_rolled_out(image)

    async def is_rolled_out(self, image: str) -> None:
        said = await self(*STATUS)
        assert said.out.splitlines()[-1] == f'daemon set "{AGENT}" successfully rolled out'
        # kubectl may have seen it before we do.
        await self.world.until(f"pods of {image} alone", lambda: images(self.world) == {image})
        await serves(self.world, 2)
        assert images(self.world) == {image}

    def seen(self) -> dict[str, Any]:
        """What a rollout would change."""
        return {
            "pods": sorted(pod["metadata"]["uid"] for pod in self.world.pods()),
            "history": [
                (each["metadata"]["uid"], each["revision"]) for each in self.world.all(CONTROLLER_REVISIONS)
            ],
            "status": self.world.status(DAEMON_SETS, AGENT),
        }


@asynccontextmanager
async def with_two_nodes(server: Server) -> AsyncIterator[Stage]:
    async with open_stage(server, Stage) as stage:
        for suffix in "ab":
            await node(stage.world, suffix)
        yield stage


async def test_rollouts_are_followed_listed_and_undone_as_kubectl_does(server: Server) -> None:
    async with with_two_nodes(server) as stage, ours(server, DaemonSetController):
        await stage.roll_out(FIRST)
        await stage.roll_out(SECOND)
        listed = (await stage("rollout", "history", SET)).out.splitlines()
        assert [line.split()[0] for line in listed[2:4]] == ["1", "2"]
        assert FIRST in (await stage("rollout", "history", SET, "--revision=1")).out
        await stage("rollout", "undo", SET)
        await stage.is_rolled_out(FIRST)
        listed = (await stage("rollout", "history", SET)).out.splitlines()
        assert [line.split()[0] for line in listed[2:4]] == ["2", "3"]
        before = stage.seen()
        await stage("rollout", "restart", SET)
        await stage.is_rolled_out(FIRST)
        assert not {*before["pods"]} & {*stage.seen()["pods"]}
        shown = (await stage("get", "daemonset", AGENT, "--no-headers")).out.split()
        assert shown[:6] == [AGENT, "2", "2", "2", "2", "2"]


async def test_kube_controller_manager_and_ours_take_over_from_each_other(
    server: Server, tmp_path: Path
) -> None:
    """Whoever comes finds pods and history as the other left them, and rolls nothing out again."""
    require("kube-controller-manager")
    async with with_two_nodes(server) as stage:
        with controller_manager(tmp_path / "before", server, ("daemonset-controller",)):
            await stage.roll_out(FIRST)
            await stage.roll_out(SECOND)
            await stage.world.settle()
        left = stage.seen()
        async with ours(server, DaemonSetController):
            await stage.world.settle(seconds=3)
            assert stage.seen() == left
            await stage.roll_out(THIRD)
            await stage("rollout", "undo", SET)
            await stage.is_rolled_out(SECOND)
            await stage.world.settle()
        left = stage.seen()
        assert [number for _, number in left["history"]].count(4) == 1
        with controller_manager(tmp_path / "after", server, ("daemonset-controller",)):
            await stage.world.settle(seconds=5)
            assert stage.seen() == left
            # And it knows what ours has written: to go back to it makes no new revision.
            await stage("rollout", "undo", SET)
            await stage.is_rolled_out(THIRD)
            assert len(stage.seen()["history"]) == 3
