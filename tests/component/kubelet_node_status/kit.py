"""A node on an embedded server, and what a test needs to make it fail, change and vanish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import Object
from podlife.client import LEASES, NODES, Client, DeleteOptions
from podlife.errors import NotFoundError
from podlife.kubelet.node_status import FixedMachine, MachineFacts, MachineUsage, NodeReporter, NodeSettings
from podlife.kubelet.node_status.lease import NAMESPACE
from podlife.kubelet.runtime import RuntimeUnavailableError
from podlife.testing import LoopClock
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start

GIB = 2**30
FACTS = MachineFacts(4, 16 * GIB, 100 * GIB, hugepages=((2**21, 0),), boot_id="boot-1", machine_id="m")


class StubRuntime:
    name = "stub"

    def __init__(self) -> None:
        self.is_up = True

    async def version(self) -> str:
        if not self.is_up:
            raise RuntimeUnavailableError("no answer on its socket")
        return "1.0"


class MovingMachine(FixedMachine):
    def __init__(self) -> None:
        super().__init__(FACTS)
        self.now_used = MachineUsage()

    def usage(self) -> MachineUsage:
        return self.now_used


class Events:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def event(self, regarding: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        assert regarding["kind"] == "Node"
        self.reasons.append(reason)


@dataclass
class World:
    client: Client
    on_the_way: Client
    requests: list[tuple[str, str]] = field(default_factory=list)
    # What the server does instead of answering: None answers, a number refuses, "stall" says nothing.
    weather: int | str | None = None
    # Methods and ends of paths that the node has no right to.
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    runtime: StubRuntime = field(default_factory=StubRuntime)
    machine: MovingMachine = field(default_factory=MovingMachine)
    events: Events = field(default_factory=Events)
    problems: list[str] = field(default_factory=list)

    def reporter(self, **settings: Any) -> NodeReporter:
        return NodeReporter(
            self.on_the_way,
            NodeSettings("n1", addresses=("192.0.2.1",), **settings),
            LoopClock(),
            machine=self.machine,
            runtime=self.runtime,
            recorder=self.events,
            problems=lambda: self.problems,
        )

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[NodeReporter]:
        reporter = self.reporter(**settings)
        failures: list[BaseException] = []
        task = spawn(reporter.run(), name="node", on_failure=failures.append)
        await asyncio.sleep(1)
        try:
            yield reporter
        finally:
            await cancel_and_wait(task)
        assert not failures

    async def node(self) -> Object:
        return await self.client.get(NODES, "n1")

    async def delete_node(self) -> str:
        """Its UID."""
        uid = str((await self.node())["metadata"]["uid"])
        await self.client.delete(NODES, "n1", options=DeleteOptions(uid=uid))
        return uid

    async def has_node(self) -> bool:
        try:
            await self.node()
        except NotFoundError:
            return False
        return True

    async def condition(self, type_: str) -> Object:
        conditions = (await self.node())["status"]["conditions"]
        return next(each for each in conditions if each["type"] == type_)

    async def lease(self) -> Object:
        return await self.client.get(LEASES, "n1", NAMESPACE)

    def sent(self, method: str, path: str) -> int:
        return sum(1 for each in self.requests if each[0] == method and path in each[1])


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    handler = await start()

    async def note(request: Request, on: Handler) -> Response:
        here.requests.append((request.method, request.path))
        if here.weather == "stall":
            await asyncio.sleep(3600)
        if any(request.method == method and request.path.endswith(end) for method, end in here.forbidden):
            return refusal(403, "Forbidden")
        if isinstance(here.weather, int):
            return refusal(here.weather)
        return await on(request)

    async with connect(handler) as client, connect(handler, note) as on_the_way:
        here = World(client, on_the_way)
        yield here
