"""A StatefulSet changes hands between our controller and kube-controller-manager: nobody makes a revision again, and
no pod is replaced.

What is compared by kube-controller-manager is the bytes of a revision. That a template which was there two revisions
ago is found again shows that ours are the same to the byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podlife.client import CONTROLLER_REVISIONS, NAMESPACES, STATEFUL_SETS, Client
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.workloads.statefulset import StatefulSetController
from tests.kit.real_parts import Server, controller_manager, kube_apiserver, podlife_apiserver
from tests.real.conftest import require
from tests.workloads.objects import template
from tests.workloads.runs import KubeQuota, at_work, connect, observing
from tests.workloads.scenarios.statefulset import stateful_set, until_updated
from tests.workloads.world import World

STS = STATEFUL_SETS
NAMESPACE = "takeover"
# As it is by default: it sees the bytes as they were sent, not as a server writes them in JSON.
PROTOBUF = "--kube-api-content-type=application/vnd.kubernetes.protobuf"
# What Go writes in its own way: letters of HTML, a number that no float holds, letters beyond ASCII.
STRANGE = [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9007199254740993}]
COMMAND = ["sh", "-c", 'test 1 < 2 && echo "ünïcödé\u2028" > /dev/null']


def a_template(image: str) -> dict[str, object]:
    made = template("web", f"registry.example/main:{image}", tolerations=STRANGE)
    made["spec"]["containers"][0]["command"] = COMMAND
    return made


@asynccontextmanager
async def ours(client: Client) -> AsyncIterator[None]:
    plane = ControlPlane(client, clock=SystemClock())
    plane.add(StatefulSetController(plane))
    async with at_work(plane.run):
        yield


def revisions(world: World) -> dict[str, int]:
    return {each["metadata"]["name"]: each["revision"] for each in world.all(CONTROLLER_REVISIONS)}


def pods(world: World) -> set[str]:
    return {pod["metadata"]["uid"] for pod in world.pods()}


async def update(world: World, image: str) -> None:
    await world.patch(STS, "web", {"spec": {"template": a_template(image)}})
    await until_updated(world, 2)


async def settle(world: World) -> None:
    """Whoever is in charge has looked at the set, and is done with it."""
    await world.patch(
        STS, "web", {"spec": {"minReadySeconds": world.get(STS, "web")["metadata"]["generation"] % 2}}
    )
    await world.until_status(STS, "web", availableReplicas=2)
    await world.settle()


async def story(server: Server, folder: Path, *flags: str) -> None:
    async with connect(server.kubeconfig) as client, observing(client, KubeQuota(client)) as cluster:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        world = World(cluster, NAMESPACE)
        async with at_work(world.node.run):
            async with ours(client):
                await world.create(STS, stateful_set("web", 2, template=a_template("1")))
                await until_updated(world, 2)
                await update(world, "2")
            made, running = revisions(world), pods(world)
            assert sorted(made.values()) == [1, 2]
            with controller_manager(folder, server, ["statefulset-controller"], *flags):
                await settle(world)
                assert (revisions(world), pods(world)) == (made, running)
                # Back to what ours has written down, which is found; and on to something new.
                await update(world, "1")
                assert revisions(world).keys() == made.keys()
                assert sorted(revisions(world).values()) == [2, 3]
                await update(world, "3")
            made, running = revisions(world), pods(world)
            assert len(made) == 3
            async with ours(client):
                await settle(world)
                assert (revisions(world), pods(world)) == (made, running)
                await update(world, "2")
                assert revisions(world).keys() == made.keys()
                assert sorted(revisions(world).values()) == [3, 4, 5]


def test_a_set_that_changes_hands_gets_no_new_revision(parts_folder: Path) -> None:
    require("etcd", "kube-apiserver", "kube-controller-manager")
    folder = parts_folder / "takeover"
    with kube_apiserver(folder / "kube") as server:
        asyncio.run(story(server, folder / "kcm", PROTOBUF))


def test_nor_does_one_on_the_embedded_server(parts_folder: Path) -> None:
    require("kube-controller-manager")
    folder = parts_folder / "takeover-podlife"
    with podlife_apiserver(folder / "podlife") as server:
        asyncio.run(story(server, folder / "kcm"))
