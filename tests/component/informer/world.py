"""An API server in the test's own process, a line to it that a test can disturb, and a handler that takes notes."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import Object
from podlife.api.views import Metadata
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import HistoryLimits, MemoryStore
from podlife.client import CONFIG_MAPS, Client, InProcessTransport, NotSentError
from podlife.client.transport import SilenceError, TransportResponse
from podlife.clock import ManualClock
from podlife.errors import NotFoundError, UnreachableError
from podlife.informer import Informer
from podlife.wire import Peer, Request, Response
from tests.kit.wait import until

ROOT = Peer("admin", ("system:masters",))


def refusal(code: int, reason: str) -> Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"{reason}!"}
    return Response(code, json.dumps(body).encode())


class ConfigMap(msgspec.Struct, gc=False):
    metadata: Metadata
    data: dict[str, str] | None = None


class Stream:
    """An answer on its way: the test can put something into it, break it, or hold back what comes of it."""

    def __init__(self, inner: TransportResponse, line: Line) -> None:
        self._inner = inner
        self._line = line
        self._reading: asyncio.Task[bytes] | None = None
        self._injected: deque[bytes | Exception] = deque()
        self._wake = asyncio.Event()
        self._is_stalled = False
        self.status = inner.status
        self.headers = inner.headers

    def inject(self, *pieces: bytes | Exception) -> None:
        self._injected.extend(pieces)
        self._wake.set()

    def inject_event(self, type_: str, obj: Object) -> None:
        self.inject(json.dumps({"type": type_, "object": obj}).encode() + b"\n")

    def cut(self) -> None:
        self.inject(UnreachableError("the answer was cut off"))

    def stall(self) -> None:
        self._is_stalled = True
        self._wake.set()

    async def next_piece(self, *, seconds: float | None) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                return await self._next()
        except TimeoutError:
            raise SilenceError(f"the server was silent for {seconds or 0:g} s") from None

    async def _next(self) -> bytes:
        while not self._injected:
            self._wake.clear()
            if self._is_stalled:
                await self._wake.wait()
                continue
            if self._reading is None:
                self._reading = spawn(self._inner.next_piece(seconds=None), name="read", on_failure=ignore)
            waking = spawn(self._wake.wait(), name="wake", on_failure=ignore)
            try:
                await asyncio.wait({self._reading, waking}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await cancel_and_wait(waking)
            if self._reading.done() and not self._injected and not self._is_stalled:
                reading, self._reading = self._reading, None
                return reading.result()
        injected = self._injected.popleft()
        if isinstance(injected, Exception):
            raise injected
        return injected

    async def close(self) -> None:
        if self._reading is not None:
            await cancel_and_wait(self._reading)
        await self._inner.close()
        if self in self._line.streams:
            self._line.streams.remove(self)


def ignore(_: BaseException) -> None:
    pass


class Line:
    """The transport: `refuse` answers in the server's place, `is_down` is nobody there."""

    def __init__(self, server: InProcessTransport) -> None:
        self.server = server
        self.is_down = False
        self.requests: list[Request] = []
        self.streams: list[Stream] = []
        self._answers: list[tuple[str, Response, int]] = []

    def refuse(self, response: Response, *, times: int = 1, where: str = "") -> None:
        """Answer the next requests whose query has `where` in it with this."""
        self._answers.append((where, response, times))

    def allow(self) -> None:
        self._answers = []

    async def prepare(self) -> None:
        pass

    async def send(
        self, request: Request, *, seconds: float | None, is_stream: bool = False
    ) -> TransportResponse:
        self.requests.append(request)
        if self.is_down:
            raise NotSentError("nobody there")
        for position, (where, response, times) in enumerate(self._answers):
            if where in request.query.raw:
                self._answers[position] = (where, response, times - 1)
                if times == 1:
                    del self._answers[position]
                return await InProcessTransport(_always(response)).send(request, seconds=seconds)
        answer = await self.server.send(request, seconds=seconds, is_stream=is_stream)
        if not is_stream:
            return answer
        stream = Stream(answer, self)
        self.streams.append(stream)
        return stream

    @property
    def stream(self) -> Stream:
        (stream,) = self.streams
        return stream

    def go_down(self) -> None:
        self.is_down = True
        for stream in list(self.streams):
            stream.cut()

    async def close(self) -> None:
        pass


def _always(response: Response) -> Callable[[Request], Awaitable[Response]]:
    async def handler(_: Request) -> Response:
        return response

    return handler


class World:
    """`line` is the informer's way to the server, `admin` the test's own."""

    line: Line
    client: Client

    def __init__(self, limits: HistoryLimits | None) -> None:
        self._limits = limits

    @classmethod
    async def start(cls, *names: str, limits: HistoryLimits | None = None) -> World:
        """A server that holds these objects."""
        world = cls(limits)
        await world._new_server()
        world.line = Line(world._transport)
        world.client = Client(world.line)
        for name in names:
            await world.put(name)
        return world

    async def _new_server(self) -> None:
        handler = assemble(MemoryStore(self._limits), clock=ManualClock(), authenticator=Authenticator())
        await create_system_namespaces(handler.registry, ADMIN)
        self._transport = InProcessTransport(handler, peer=ROOT)
        self.admin = Client(self._transport)

    async def begin_anew(self) -> None:
        """Another server under the same address, with nothing of the data of the first."""
        await self._new_server()
        self.line.server = self._transport

    def informer(self, **options: Any) -> Informer[Any]:
        options.setdefault("view", ConfigMap)
        options.setdefault("namespace", "default")
        return Informer(self.client, CONFIG_MAPS, **options)

    async def put(self, name: str, value: str = "", *, namespace: str = "default") -> Object:
        """Make the object, or give it this value."""
        metadata = {"name": name, "namespace": namespace, "labels": {"name": name}}
        obj: Object = {"metadata": metadata, "data": {"v": value}}
        try:
            return await self.admin.update(CONFIG_MAPS, obj)
        except NotFoundError:
            return await self.admin.create(CONFIG_MAPS, obj)

    async def delete(self, name: str, *, namespace: str = "default") -> None:
        await self.admin.delete(CONFIG_MAPS, name, namespace)

    async def caught_up(self, informer: Informer[Any]) -> None:
        """Return when the informer has seen everything that has happened until now, by an object made now."""
        made = await self.admin.create(CONFIG_MAPS, {"metadata": {"generateName": "marker-"}}, "default")
        await until(lambda: informer.cache.get("default", made["metadata"]["name"]))


class Notes:
    """A handler that writes down what it is told: `+a` came, `~a v` changed, `=a` a resync, `-a` went."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def on_add(self, obj: Any) -> None:
        self._note("+", obj)

    def on_update(self, old: Any, new: Any) -> None:
        assert (old.metadata.name, old.metadata.uid) == (new.metadata.name, new.metadata.uid)
        self._note("=" if old is new else "~", new)

    def on_delete(self, obj: Any) -> None:
        self._note("-", obj)

    def take(self) -> list[str]:
        taken, self.all = self.all, []
        return [note for note in taken if "marker-" not in note]

    def _note(self, sign: str, obj: Any) -> None:
        data = getattr(obj, "data", None)
        value = f" {data['v']}" if data and data.get("v") else ""
        self.all.append(f"{sign}{obj.metadata.name}{value}")


async def started(
    *names: str, limits: HistoryLimits | None = None, **options: Any
) -> tuple[World, Informer[Any], Notes]:
    """A server that holds these objects, and an informer with a handler, which does not run yet."""
    world = await World.start(*names, limits=limits)
    informer, notes = world.informer(**options), Notes()
    informer.add_handler(notes)
    return world, informer, notes


def value(informer: Informer[Any], name: str) -> str:
    """Of an object in the cache."""
    held = informer.cache.get("default", name)
    assert held is not None
    return held.data["v"]


@asynccontextmanager
async def following(*names: str, **options: Any) -> AsyncIterator[tuple[World, Informer[Any], Notes]]:
    """As `started`, with the informer running and synced; what it told until then is not in the notes."""
    world, informer, notes = await started(*names, **options)
    async with run_informer(informer):
        notes.take()
        yield world, informer, notes


@asynccontextmanager
async def run_informer(
    informer: Informer[Any], *, seconds: float = 60.0
) -> AsyncIterator[asyncio.Task[None]]:
    """The informer running and synced, for as long as the block lasts; with 0 seconds, just running."""
    task = spawn(informer.run(), name="informer", on_failure=ignore)
    try:
        if seconds:
            assert await informer.wait_for_sync(seconds=seconds), informer.trouble
        yield task
    finally:
        await cancel_and_wait(task)
