"""A node with an agent that can be killed, over simulated containers and a server in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import EVENTS, PODS, Client, DeleteOptions
from podlife.errors import NotFoundError
from podlife.kubelet.kubelet import Kubelet
from podlife.kubelet.node_status import FixedMachine, MachineFacts, NodeSettings
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime, SimWorld
from podlife.kubelet.settings import KubeletSettings
from podlife.testing import LoopClock
from tests.kit import objects
from tests.kit.embedded import Disturbance, connect, start
from tests.kit.worlds import in_world

Object = dict[str, Any]
MACHINE = FixedMachine(MachineFacts(cores=4, memory_bytes=8 * 2**30, storage_bytes=100 * 2**30))
NODE = "n1"


def pod(name: str = "web", *, containers: Sequence[Object] = (), **spec: Any) -> Object:
    return objects.pod(name, *containers, nodeName=NODE, **spec)


def failing(error: Exception) -> Callable[..., Coroutine[Any, Any, None]]:
    """Stands for a call that raises this."""

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


class PodUser:
    """What a user does with pods, and sees of them."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def create(self, obj: Object) -> Object:
        return await self.client.create(PODS, obj, "default")

    async def running(self, obj: Object) -> Object:
        """Create the pod; it as it runs."""
        await self.create(obj)
        return await self.until_phase("Running", obj["metadata"]["name"])

    async def get(self, name: str = "web") -> Object:
        return await self.client.get(PODS, name, "default")

    async def delete(self, name: str = "web", grace_seconds: int | None = None) -> None:
        options = DeleteOptions(grace_period_seconds=grace_seconds)
        await self.client.delete(PODS, name, "default", options=options)

    async def until(
        self, condition: Callable[[Object], bool], name: str = "web", *, seconds: float = 120.0
    ) -> Object:
        """The pod as it is when the condition holds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            found = await self.get(name)
            if condition(found):
                return found
            assert loop.time() < deadline, found.get("status")
            await asyncio.sleep(0.05)

    async def until_phase(self, phase: str, name: str = "web", *, seconds: float = 120.0) -> Object:
        return await self.until(lambda each: each["status"].get("phase") == phase, name, seconds=seconds)

    async def until_gone(self, name: str = "web", *, seconds: float = 120.0) -> float:
        """How long it took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            try:
                found = await self.get(name)
            except NotFoundError:
                return loop.time() - began
            assert loop.time() < began + seconds, found
            await asyncio.sleep(0.05)

    async def events(self) -> list[tuple[str, str, str]]:
        """Reason, message and place of what was told of pods, in order."""
        found = await self.client.list_all(EVENTS)
        about = [each for each in found.items if each["involvedObject"]["kind"] == "Pod"]
        about.sort(key=lambda each: each["metadata"]["name"].rpartition(".")[2])
        return [
            (each["reason"], each["message"], each["involvedObject"].get("fieldPath", "")) for each in about
        ]


class NodeWorld(PodUser):
    """What a user sees of a node, and the machine under it. `behaviours` are by name of the container."""

    def __init__(self, server: ApiHandler, client: Client) -> None:
        super().__init__(client)
        self.server = server
        self.clock = LoopClock()
        self.behaviours: dict[str, Behaviour] = {}
        self.machine = SimWorld(self.clock, self._script, ips=("10.0.0.7",))
        self._agent: Kubelet | None = None
        self.started: list[tuple[str, int]] = []
        self._running: asyncio.Task[None] | None = None
        self._agent_client: Client | None = None

    @property
    def agent(self) -> Kubelet:
        assert self._agent is not None, "no agent was begun"
        return self._agent

    def _script(self, sandbox: SandboxConfig, config: ContainerConfig) -> Behaviour:
        self.started.append((config.name, config.attempt))
        return self.behaviours.get(config.name, Behaviour())

    async def begin(self, disturb: Disturbance | None = None, **settings: Any) -> Kubelet:
        """An agent on the same machine, with no memory of one before."""
        self._agent_client = connect(self.server, disturb)
        node = NodeSettings(NODE, addresses=("192.0.2.1",), **settings)
        self._agent = Kubelet(
            self._agent_client, SimRuntime(self.machine), KubeletSettings(node), self.clock, machine=MACHINE
        )
        self._running = asyncio.get_running_loop().create_task(self._agent.run())
        return self._agent

    async def kill(self) -> None:
        """The agent is gone from one moment to the next; what it runs goes on."""
        if self._running is not None and self._agent_client is not None:
            await cancel_and_wait(self._running)
            failure = None if self._running.cancelled() else self._running.exception()
            await self._agent_client.close()
            self._running = None
            if failure is not None:
                raise failure


@asynccontextmanager
async def node_world(*, is_begun: bool = True) -> AsyncIterator[NodeWorld]:
    server = await start()
    async with connect(server) as client:
        world = NodeWorld(server, client)
        if is_begun:
            await world.begin()
        try:
            yield world
        finally:
            await world.kill()


on_a_node = in_world(node_world)
