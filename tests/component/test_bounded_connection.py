"""Heads of requests over a real socket: bounded in bytes and in time, whatever else goes over the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web

from podlife.bounded_connection import BoundedConnection, UnauthenticatedConnections

MOST = 32 * 1024
DEADLINE = 60.0
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Server(web.Server):
    def __init__(self, answer: Answer, strangers: UnauthenticatedConnections) -> None:
        super().__init__(self._serve)
        self._answer = answer
        self._strangers = strangers

    def __call__(self) -> BoundedConnection:
        connection = BoundedConnection(self, most_head_bytes=MOST, first_head_seconds=30.0, loop=self._loop)
        self._strangers.add(connection)
        return connection

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        assert isinstance(request.protocol, BoundedConnection)
        request.protocol.request_begins(request)
        try:
            return await self._answer(request)
        finally:
            request.protocol.request_ends()


async def length(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text=str(len(await request.read())))


@asynccontextmanager
async def serving(answer: Answer = length, strangers: int = 100) -> AsyncIterator[int]:
    server = Server(answer, UnauthenticatedConnections(strangers))
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        async with asyncio.timeout(DEADLINE):
            yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await server.shutdown(1.0)


def head(size: int, *, more: bytes = b"") -> bytes:
    """About so many bytes, each header within the bounds of the library."""
    header = b"X: " + b"x" * 995 + b"\r\n"
    return b"POST / HTTP/1.1\r\nHost: h\r\n" + header * (size // 1_000) + more


async def ask(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_head_that_goes_on_beyond_the_bound_is_refused() -> None:
    async with serving() as port:
        # It never ends: the answer comes because there was too much of it.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(MOST + 2_000))
        assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")
        writer.close()


async def test_a_head_within_the_bound_is_answered() -> None:
    async with serving() as port:
        assert (await ask(port, head(MOST - 4_000, more=b"Connection: close\r\n\r\n"))).startswith(
            b"HTTP/1.1 200"
        )


async def test_a_body_beyond_the_bound_of_heads_is_read() -> None:
    async with serving() as port:
        size = 20 * MOST
        more = b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size
        assert (await ask(port, head(1_000, more=more) + b"x" * size)).endswith(str(size).encode())


async def test_heads_that_wait_for_their_turn_count_together() -> None:
    may_answer = asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        await may_answer.wait()
        return await length(request)

    async with serving(slow) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(1_000, more=b"\r\n") + head(MOST // 2, more=b"\r\n") * 5)
        await writer.drain()
        may_answer.set()
        answers = await reader.read()
        # The connection ends though nobody has asked for that, and not all are answered.
        assert answers.count(b"HTTP/1.1 200") < 6
        writer.close()


async def test_what_follows_an_upgrade_is_no_head() -> None:
    async def switched(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(str(len(message.data)))
        return socket

    async with (
        serving(switched) as port,
        ClientSession() as session,
        session.ws_connect(f"http://127.0.0.1:{port}/") as socket,
    ):
        for _ in range(4):
            await socket.send_bytes(b"x" * MOST)
            assert await socket.receive_str() == str(MOST)


async def test_one_stranger_too_many_costs_the_oldest_its_place() -> None:
    async with serving(strangers=2) as port:
        opened = []
        for _ in range(3):
            opened.append(await asyncio.open_connection("127.0.0.1", port))
            # Accepted in this order.
            await asyncio.sleep(0)
        oldest, _ = opened[0]
        assert await oldest.read() == b""
        _, newest = opened[2]
        newest.write(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert (await opened[2][0].read()).startswith(b"HTTP/1.1 200")
        for _, writer in opened:
            writer.close()


async def test_strangers_in_numbers_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(strangers=1) as port:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4)]
        for reader, _ in opened[:3]:
            assert await reader.read() == b""
        assert len([each for each in caplog.records if "unauthenticated" in each.message]) == 1
        for _, writer in opened:
            writer.close()
