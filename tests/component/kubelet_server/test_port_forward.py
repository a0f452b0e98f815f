"""Forwarded ports of a pod, over SPDY/3.1 on its own, tunnelled in a WebSocket, and over plain channels."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from podlife.kubelet.server.streaming import port_forward
from podlife.kubelet.spdy import FrameReader, FrameWriter, Ping, StreamData, StreamReset
from tests.component.kubelet_server.kit import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

TUNNELLED = "SPDY/3.1+portforward.k8s.io"
SECONDS = 60


class Forwarder:
    """A caller of SPDY, over whatever `send` and `receive` are."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.frames, self.reader = FrameWriter(), FrameReader()
        self.heard: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.reset: set[int] = set()
        self.pings: list[int] = []
        self.next_id = 1

    async def send(self, data: bytes) -> None:
        raise NotImplementedError

    async def receive(self) -> bytes:
        raise NotImplementedError

    async def open(self, port: object, request_id: str | None = None, *kinds: str) -> tuple[int, int]:
        """The IDs of the error and the data stream."""
        first = self.next_id
        for kind in kinds or ("error", "data"):
            headers = {"streamtype": kind, "port": str(port), "requestid": request_id or str(first)}
            await self.send(self.frames.open(self.next_id, headers))
            self.next_id += 2
        return first, first + 2

    async def until(self, stream_id: int, text: bytes | None = None) -> bytes:
        """Until the stream has ended or, with a text, has that."""
        async with asyncio.timeout(SECONDS):
            while stream_id not in self.ended | self.reset:
                if text is not None and text in self.heard.get(stream_id, b""):
                    break
                await self.hear()
        return self.heard.get(stream_id, b"")

    async def hear(self) -> None:
        data = await self.receive()
        assert data, "the connection has ended"
        for frame in self.reader.feed(data):
            match frame:
                case StreamData():
                    self.heard[frame.stream_id] = self.heard.get(frame.stream_id, b"") + frame.data
                    if frame.is_last:
                        self.ended.add(frame.stream_id)
                case StreamReset():
                    self.reset.add(frame.stream_id)
                case Ping():
                    self.pings.append(frame.number)


@asynccontextmanager
async def tunnelled(world: World) -> AsyncIterator[Forwarder]:
    url = f"{world.url}/portForward/default/web"
    async with world.caller().ws_connect(url, protocols=[TUNNELLED]) as channel:
        assert channel.protocol == TUNNELLED
        made = Forwarder(world)
        made.send, made.receive = channel.send_bytes, channel.receive_bytes  # type: ignore[method-assign]
        yield made


@asynccontextmanager
async def plain_spdy(world: World) -> AsyncIterator[Forwarder]:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.endpoint.port, ssl=world.trusting())
    writer.write(
        b"POST /portForward/default/web HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        b"X-Stream-Protocol-Version: portforward.k8s.io\r\nContent-Length: 0\r\n\r\n"
    )
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"X-Stream-Protocol-Version: portforward.k8s.io\r\n" in answer
    made = Forwarder(world)

    async def send(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    made.send = send  # type: ignore[method-assign]
    made.receive = lambda: reader.read(65536)  # type: ignore[method-assign]
    try:
        yield made
    finally:
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    """A port of the pod that answers each line in capitals, and says goodbye at the end."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.write(b"bye")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 26)
    async with server:
        yield server.sockets[0].getsockname()[1]


def free_port() -> int:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        return int(nobody.getsockname()[1])


@pytest.mark.parametrize("calling", [tunnelled, plain_spdy])
async def test_connections_are_carried_side_by_side_and_end_in_order(web: World, calling: object) -> None:
    async with serving() as port, calling(web) as caller:  # type: ignore[operator]
        (error, data), (other_error, other_data) = await caller.open(port), await caller.open(port)
        await caller.send(caller.frames.data(data, b"one\n"))
        await caller.send(caller.frames.data(other_data, b"two\n"))
        await caller.until(data, b"ONE\n")
        await caller.until(other_data, b"TWO\n")
        await caller.send(caller.frames.ping(7))
        await caller.send(caller.frames.data(data, b"", is_last=True))
        assert await caller.until(data) == b"ONE\nbye"
        assert await caller.until(error) == b""
        await caller.send(caller.frames.data(other_data, b"x" * 3_000_000 + b"\n", is_last=True))
        assert len(await caller.until(other_data)) == 3_000_008
        assert await caller.until(other_error) == b""
    assert caller.pings == [7]


@pytest.mark.parametrize("calling", [tunnelled, plain_spdy])
async def test_a_port_that_nobody_serves_is_told_and_others_go_on(web: World, calling: object) -> None:
    nobody = free_port()
    async with serving() as port, calling(web) as caller:  # type: ignore[operator]
        error, data = await caller.open(nobody)
        said = await caller.until(error)
        assert (
            said
            == (
                f"error forwarding port {nobody} to pod web, uid : "
                f"dial tcp localhost:{nobody}: connect: connection refused"
            ).encode()
        )
        await caller.until(data)
        _, data = await caller.open(port)
        await caller.send(caller.frames.data(data, b"still\n"))
        await caller.until(data, b"STILL\n")


async def test_a_pod_that_ends_takes_no_more_connections(web: World) -> None:
    pod = await web.pods.run("forwarded", "sleep 1000")
    web.pods.known["default", "web"], before = pod, web.pods.known["default", "web"]
    try:
        async with serving() as port, tunnelled(web) as caller:
            _, data = await caller.open(port)
            await caller.send(caller.frames.data(data, b"one\n"))
            await caller.until(data, b"ONE\n")
            [sandbox] = await web.runtime.list_sandboxes(pod_uid=pod["metadata"]["uid"])
            await web.runtime.stop_sandbox(sandbox.id)
            error, _ = await caller.open(port)
            assert b"is stopped" in await caller.until(error)
        path = "/portForward/default/web"
        code, text = await web.get(path)
        assert (code, text) == (500, "failed to find sandbox for pod web_default: it does not run")
    finally:
        web.pods.known["default", "web"] = before


async def test_streams_that_make_no_sense_are_refused(web: World) -> None:
    async with serving() as port, tunnelled(web) as caller:
        wrong = [
            (await caller.open("x", None, "data"))[0],
            (await caller.open(0, None, "error"))[0],
            (await caller.open(70_000, None, "data"))[0],
            (await caller.open(port, None, "other"))[0],
        ]
        await caller.open(port, "same", "error")
        wrong.append((await caller.open(port, "same", "error"))[0])
        wrong.append((await caller.open(port + 1, "same", "data"))[0])
        for each in wrong:
            await caller.until(each)
    assert caller.reset == set(wrong)


async def test_there_is_a_limit_for_open_connections(web: World) -> None:
    most = port_forward._MOST_FORWARDS
    async with tunnelled(web) as caller:
        opened = [(await caller.open(80, None, "error"))[0] for _ in range(most + 1)]
        await caller.until(opened[-1])
    assert caller.reset == {opened[-1]}


async def test_one_that_takes_nothing_is_reset_and_the_others_go_on(
    web: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(port_forward, "_STALL_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        async with serving() as port, tunnelled(web) as caller:
            _, stuck = await caller.open(deaf.getsockname()[1])
            for _ in range(100):
                await caller.send(caller.frames.data(stuck, bytes(100_000)))
            await caller.until(stuck)
            assert stuck in caller.reset
            _, data = await caller.open(port)
            await caller.send(caller.frames.data(data, b"still\n"))
            await caller.until(data, b"STILL\n")


async def test_a_caller_that_never_reads_costs_little_and_can_leave(web: World) -> None:
    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(1 << 20))
            await writer.drain()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with server:
        async with plain_spdy(web) as caller:
            _, data = await caller.open(server.sockets[0].getsockname()[1])
            await caller.until(data, bytes(1))
        # It has left: the endpoint serves others.
        async with tunnelled(web) as other:
            error, _ = await other.open(free_port())
            assert await other.until(error)


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", ""])
async def test_plain_channels_carry_the_ports_of_the_query(web: World, protocol: str) -> None:
    nobody = free_port()
    heard: dict[int, bytes] = {}
    async with serving() as port, asyncio.timeout(SECONDS):
        url = f"{web.url}/portForward/default/web?port={port},{nobody}"
        async with web.caller().ws_connect(url, protocols=[protocol] if protocol else []) as channel:

            async def until(number: int, text: bytes) -> None:
                while text not in heard.get(number, b""):
                    message = await channel.receive()
                    assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
                    if "base64" in protocol:
                        which, data = int(message.data[0]), base64.b64decode(message.data[1:])
                    else:
                        which, data = message.data[0], message.data[1:]
                    heard[which] = heard.get(which, b"") + data

            await until(3, b"connection refused")
            if "base64" in protocol:
                await channel.send_str("0" + base64.b64encode(b"hi\n").decode())
            else:
                await channel.send_bytes(b"\0hi\n")
            await until(0, b"HI\n")
    assert heard[0] == port.to_bytes(2, "little") + b"HI\n"
    assert heard[1] == port.to_bytes(2, "little")
    assert heard[2] == nobody.to_bytes(2, "little")


@pytest.mark.parametrize("query", ["", "?port=x", "?port=0", "?port=65536", "?port=80,"])
async def test_ports_that_are_none_are_refused(web: World, query: str) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await web.caller().ws_connect(f"{web.url}/portForward/default/web{query}")
    assert refused.value.status == 400
