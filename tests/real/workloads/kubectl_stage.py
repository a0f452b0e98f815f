"""A namespace in which kubectl is used; nodes are played by a stand-in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from podlife.client import NAMESPACES
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from tests.kit.real_parts import Server
from tests.real.clients.pair import One, Said
from tests.workloads.runs import KubeQuota, at_work, connect, observing
from tests.workloads.world import World

_NUMBERS = itertools.count(1)


class KubectlStage:
    def __init__(self, server: Server, world: World) -> None:
        self.world = world
        self._kubectl = One(server, world.namespace)

    async def __call__(self, *arguments: str, code: int = 0, **how: Any) -> Said:
        return await asyncio.to_thread(self._kubectl, *arguments, code=code, **how)

    async def history(self, what: str) -> list[list[str]]:
        """The words of each line that kubectl lists, the number of the revision first."""
        listed = (await self("rollout", "history", what)).out.splitlines()
        return [line.split() for line in listed[2:] if line.strip()]


S = TypeVar("S", bound=KubectlStage)


@asynccontextmanager
async def open_stage(server: Server, kind: type[S]) -> AsyncIterator[S]:
    """Without controllers."""
    namespace = f"rollout-{next(_NUMBERS)}"
    async with connect(server.kubeconfig) as client, observing(client, KubeQuota(client)) as cluster:
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        world = World(cluster, namespace)
        async with at_work(world.node.run):
            yield kind(server, world)


@asynccontextmanager
async def ours(server: Server, *controllers: Callable[[ControlPlane], Any]) -> AsyncIterator[None]:
    async with connect(server.kubeconfig) as client:
        plane = ControlPlane(client, clock=SystemClock())
        for make in controllers:
            plane.add(make(plane))
        async with at_work(plane.run):
            yield
