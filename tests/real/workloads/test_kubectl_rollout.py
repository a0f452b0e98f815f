"""`kubectl rollout` and `kubectl wait` with our Deployments' controller at work, on both API servers.

Nodes are played by a stand-in; kubectl is the real one, and its words are what is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from podlife.client import DEPLOYMENTS, REPLICA_SETS
from podlife.workloads.deployment import DeploymentController
from podlife.workloads.replicaset import ReplicaSetController
from tests.kit.real_parts import Server, controller_manager
from tests.real.clients.pair import manifest
from tests.real.conftest import require
from tests.real.workloads.kubectl_stage import KubectlStage, open_stage, ours
from tests.workloads.node import UNREADY
from tests.workloads.scenarios.deployment import SECOND, deployment, has_image

STATUS = ("rollout", "status", "deployment/web", "--timeout=180s")
REASON = "{.status.conditions[?(@.type=='Progressing')].reason}"


class Stage(KubectlStage):
    async def create(self, replicas: int, **spec: Any) -> None:
        made = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", replicas, **spec)}
        await self("apply", "-f", "-", stdin=manifest(made))
        await self(*STATUS)

    async def set_image(self, image: str, cause: str = "") -> None:
        await self("set", "image", "deployment/web", f"main={image}")
        if cause:
            await self("annotate", "deployment/web", f"kubernetes.io/change-cause={cause}", "--overwrite")

    async def pods(self) -> list[dict[str, Any]]:
        """When nobody is on the way out any more: a rollout does not wait for that."""
        async with asyncio.timeout(120):
            while True:
                found: list[dict[str, Any]] = await asyncio.to_thread(self._kubectl.get, "pods")
                if not any("deletionTimestamp" in pod["metadata"] for pod in found):
                    return found

    async def images(self) -> set[str]:
        return {pod["spec"]["containers"][0]["image"] for pod in await self.pods()}

    async def names(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in await self.pods()}

    async def until_history(self, *wanted: list[str]) -> None:
        """Why a revision came to be is written down beside its rollout, which does not wait for that."""
        async with asyncio.timeout(120):
            while (told := await self.history("deployment/web")) != list(wanted):
                assert [line[0] for line in told] == [line[0] for line in wanted]

    async def revision(self) -> str:
        path = r"jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}"
        return (await self("get", "deployment/web", "-o", path)).out


@asynccontextmanager
async def theirs(server: Server, folder: Path) -> AsyncIterator[None]:
    with ExitStack() as stack:
        # It is waited for beside the loop: the nodes go on.
        started = controller_manager(folder, server, ("deployment-controller", "replicaset-controller"))
        await asyncio.to_thread(stack.enter_context, started)
        yield
        await asyncio.to_thread(stack.close)


@asynccontextmanager
async def rolled_out(server: Server, replicas: int = 2, **spec: Any) -> AsyncIterator[Stage]:
    async with open_stage(server, Stage) as stage, ours(server, DeploymentController, ReplicaSetController):
        await stage.create(replicas, **spec)
        yield stage


async def test_status_follows_a_rollout_to_its_end(server: Server) -> None:
    async with rolled_out(server, 3) as stage:
        await stage.set_image(SECOND)
        said = await stage(*STATUS)
        assert said.out.splitlines()[-1] == 'deployment "web" successfully rolled out'
        assert await stage.images() == {SECOND}
        await stage("rollout", "status", "deployment/web", "--revision=2", "--timeout=180s")
        shown = (await stage("get", "deployment", "web", "--no-headers")).out.split()
        assert shown[:4] == ["web", "3/3", "3", "3"]
        for condition in ("Available", "Progressing"):
            await stage("wait", "deployment/web", f"--for=condition={condition}", "--timeout=180s")


async def test_status_of_a_rollout_that_is_late_is_an_error(server: Server) -> None:
    async with rolled_out(server, 1, progressDeadlineSeconds=8) as stage:
        stage.world.node.let(UNREADY, has_image(SECOND))
        await stage.set_image(SECOND)
        said = await stage(*STATUS, code=1)
        assert said.err.strip() == 'error: deployment "web" exceeded its progress deadline'
        await stage("rollout", "undo", "deployment/web")
        # It stays late until something gets on: `rollout status` at once would say so once more, as upstream's does.
        await stage(
            "wait", "deployment/web", f"--for=jsonpath={REASON}=NewReplicaSetAvailable", "--timeout=180s"
        )
        await stage(*STATUS)
        assert SECOND not in await stage.images()


async def test_history_and_undo_know_every_revision_and_why_it_was(server: Server) -> None:
    async with rolled_out(server) as stage:
        [first] = await stage.images()
        await stage("annotate", "deployment/web", "kubernetes.io/change-cause=first")
        await stage.until_history(["1", "first"])
        await stage.set_image(SECOND, cause="second")
        await stage(*STATUS)
        await stage.until_history(["1", "first"], ["2", "second"])
        detail = (await stage("rollout", "history", "deployment/web", "--revision=1")).out
        assert first in detail
        assert "pod-template-hash" in detail
        await stage("rollout", "undo", "deployment/web")
        await stage(*STATUS)
        assert (await stage.images(), await stage.revision()) == ({first}, "3")
        await stage("rollout", "undo", "deployment/web", "--to-revision=2")
        await stage(*STATUS)
        assert (await stage.images(), await stage.revision()) == ({SECOND}, "4")
        # What was rolled back to has a new number, and none of its old ones is listed twice.
        assert [line[0] for line in await stage.history("deployment/web")] == ["3", "4"]
        said = await stage("rollout", "undo", "deployment/web", "--to-revision=1", code=1)
        assert "unable to find specified revision 1 in history" in said.err


async def test_pause_holds_changes_back_until_resume(server: Server) -> None:
    async with rolled_out(server) as stage:
        before = await stage.images()
        await stage("rollout", "pause", "deployment/web")
        await stage.set_image(SECOND)
        await stage("wait", "deployment/web", f"--for=jsonpath={REASON}=DeploymentPaused", "--timeout=180s")
        await stage("scale", "deployment/web", "--replicas=3")
        await stage(
            "wait", "deployment/web", "--for=jsonpath={.status.availableReplicas}=3", "--timeout=180s"
        )
        assert await stage.images() == before
        await stage("rollout", "resume", "deployment/web")
        await stage(*STATUS)
        assert await stage.images() == {SECOND}


async def test_restart_replaces_all_pods(server: Server) -> None:
    async with rolled_out(server) as stage:
        before = await stage.names()
        await stage("rollout", "restart", "deployment/web")
        await stage(*STATUS)
        after = await stage.names()
        assert len(after) == 2
        assert not before & after
        assert await stage.revision() == "2"


async def test_recreated_and_deleted_deployments_are_followed_too(server: Server) -> None:
    async with rolled_out(server, strategy={"type": "Recreate"}) as stage:
        await stage.set_image(SECOND)
        await stage(*STATUS)
        assert await stage.images() == {SECOND}
        # Events are sent behind everything else.
        async with asyncio.timeout(120):
            while "Scaled down replica set" not in (
                described := (await stage("describe", "deployment", "web")).out
            ):
                await asyncio.sleep(0.1)
        assert "NewReplicaSet:" in described
        await stage("delete", "deployment", "web", "--cascade=orphan", "--wait=false")


async def test_kube_controller_manager_and_ours_take_over_from_each_other(
    server: Server, tmp_path: Path
) -> None:
    """Whoever comes finds every ReplicaSet as the other left it, and rolls nothing out again."""
    require("kube-controller-manager")
    async with open_stage(server, Stage) as stage:

        def seen() -> list[tuple[str, str, int]]:
            return [
                (each["metadata"]["name"], each["metadata"]["uid"], each["spec"]["replicas"])
                for each in stage.world.all(REPLICA_SETS)
            ]

        async with theirs(server, tmp_path / "before"):
            await stage.create(2)
            await stage.set_image(SECOND)
            await stage(*STATUS)
            await stage.world.settle()
        left = seen()
        assert len(left) == 2
        async with ours(server, DeploymentController, ReplicaSetController):
            await stage.world.settle()
            assert seen() == left
            await stage("rollout", "restart", "deployment/web")
            await stage(*STATUS)
            await stage.world.settle()
        left, status = seen(), stage.world.status(DEPLOYMENTS, "web")
        assert len(left) == 3
        async with theirs(server, tmp_path / "after"):
            await stage.world.settle(seconds=5)
            assert seen() == left
            assert stage.world.status(DEPLOYMENTS, "web") == status
            await stage("rollout", "undo", "deployment/web")
            await stage(*STATUS)
            assert await stage.revision() == "4"
