"""However the bytes of answers are cut and merged on their way, the client sees what was sent; and whoever gives up at
whatever moment, everybody else gets the answer to their own request.

There are no sockets here: answers are fed to the connection as an event loop would, so each example is quick and the
same every time."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.client import Connection, HttpTransport
from podlife.client.http_connection import HttpConnection
from podlife.wire import Query, Request

REQUEST = b"GET / HTTP/1.1\r\n\r\n"


class Wire(asyncio.Transport):
    """What a connection writes to. It remembers whether the other side may send."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False
        self.is_gone = False

    def write(self, data: Any) -> None:
        self.on_request(bytes(data))

    def on_request(self, message: bytes) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False

    def abort(self) -> None:
        self.is_gone = True


@dataclass(frozen=True)
class Sent:
    """An answer as its server means it, and as it goes over the wire."""

    status: int
    body: bytes
    wire: bytes


@st.composite
def answers(draw: st.DrawFn) -> Sent:
    status = draw(st.sampled_from([200, 201, 204, 304, 404, 429, 500]))
    has_body = status not in (204, 304)
    body = draw(st.binary(max_size=300)) if has_body else b""
    headers = [b"X-Status: %d" % status]
    packed = body
    if draw(st.booleans()) and has_body:
        headers.append(b"Content-Encoding: gzip")
        packed = gzip.compress(body)
    if has_body and draw(st.booleans()):
        headers.append(b"Transfer-Encoding: chunked")
        packed = _chunked(draw, packed)
    elif has_body:
        headers.append(b"Content-Length: %d" % len(packed))
    interim = b"HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" * draw(st.integers(0, 2))
    head = b"HTTP/1.1 %d Whatever\r\n" % status + b"\r\n".join(headers) + b"\r\n\r\n"
    return Sent(status, body, interim + head + packed)


def _chunked(draw: st.DrawFn, body: bytes) -> bytes:
    chunks = []
    while body:
        size = draw(st.integers(1, len(body)))
        extension = draw(st.sampled_from([b"", b";a=b"]))
        chunks.append(b"%x%s\r\n%s\r\n" % (size, extension, body[:size]))
        body = body[size:]
    trailer = draw(st.sampled_from([b"", b"X-Status: 999\r\n"]))
    return b"".join(chunks) + b"0\r\n" + trailer + b"\r\n"


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


async def _feed(connection: HttpConnection, wire: Wire, pieces: list[bytes]) -> None:
    for piece in pieces:
        while wire.is_paused:
            await asyncio.sleep(0)
        if wire.is_gone:
            return
        connection.data_received(piece)
        await asyncio.sleep(0)


async def _read(connection: HttpConnection) -> bytes:
    body = b""
    while piece := await connection.read(seconds=60):
        body += piece
    return body


async def _exchange(connection: HttpConnection, wire: Wire, pieces: list[bytes]) -> bytes:
    loop = asyncio.get_running_loop()
    asked = loop.create_task(connection.exchange(REQUEST, seconds=60))
    await asyncio.sleep(0)
    feeding = loop.create_task(_feed(connection, wire, pieces))
    await asked
    body = await _read(connection)
    await feeding
    return body


Exchanges = st.lists(
    st.tuples(answers(), st.lists(st.integers(0, 1000), max_size=12)), min_size=1, max_size=4
)


@given(
    Exchanges,
    st.integers(1, 100),
    st.sampled_from([b"", b"H", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]),
)
@settings(max_examples=200, deadline=None)
def test_answers_are_seen_as_they_were_sent_however_they_are_cut(
    exchanges: list[tuple[Sent, list[int]]], most_buffered: int, extra: bytes
) -> None:
    async def story() -> None:
        connection, wire = HttpConnection(most_buffered), Wire()
        connection.connection_made(wire)
        for sent, places in exchanges:
            body = await _exchange(connection, wire, _cut(sent.wire, places))
            assert (connection.status, body) == (sent.status, sent.body)
            assert connection.headers["x-status"] == str(sent.status)
            assert connection.is_reusable
            assert not wire.is_paused
        # The last answer once more, with something behind it.
        sent, places = exchanges[-1]
        body = await _exchange(connection, wire, _cut(sent.wire + extra, places))
        assert (connection.status, body) == (sent.status, sent.body)
        assert connection.headers["x-status"] == str(sent.status)
        assert connection.is_reusable is not bool(extra)

    asyncio.run(story())


class Echo(Wire):
    """A server that answers with the path it was asked for, in pieces, each after some turns of the loop."""

    def __init__(self, connection: HttpConnection, feeds: set[asyncio.Task[None]]) -> None:
        super().__init__()
        self._connection = connection
        self._feeds = feeds

    def on_request(self, message: bytes) -> None:
        path = message.split()[1]
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path)
        # A path says how slowly it is answered, and where the answer is cut.
        turns = len(path) % 3
        pieces = [b""] * turns + _cut(answer, [path[-1] % len(answer), 20])
        feeding = self._feed(pieces)
        self._feeds.add(asyncio.get_running_loop().create_task(feeding))

    async def _feed(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            await asyncio.sleep(0)
            if self.is_gone:
                return
            if piece:
                self._connection.data_received(piece)


Asked = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 14)), min_size=1, max_size=12)


@given(Asked, st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_whoever_gives_up_at_any_moment_leaves_everybody_else_their_own_answer(
    asked: list[tuple[int, int | None]], connections: int
) -> None:
    """Each asks some turns after the one before, and gives up so many turns later, or never."""
    feeds: set[asyncio.Task[None]] = set()

    async def connect(*_: object) -> HttpConnection:
        await asyncio.sleep(0)
        connection = HttpConnection(8)
        connection.connection_made(Echo(connection, feeds))
        return connection

    async def ask(transport: HttpTransport, path: str) -> None:
        answer = await transport.send(Request("GET", path, Query(""), {}), seconds=60)
        try:
            body = b""
            while piece := await answer.next_piece(seconds=60):
                body += piece
        finally:
            await answer.close()
        assert body.decode() == path

    async def give_up(task: asyncio.Task[None], turns: int | None) -> None:
        if turns is not None:
            await _turns(turns)
            task.cancel()

    async def story() -> None:
        loop = asyncio.get_running_loop()
        transport = HttpTransport(Connection("http://127.0.0.1:1"))
        tasks, quitters = [], []
        for number, (turns, patience) in enumerate(asked):
            await _turns(turns)
            tasks.append(loop.create_task(ask(transport, f"/{'x' * turns}{number}")))
            quitters.append(loop.create_task(give_up(tasks[-1], patience)))
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*quitters, *feeds)
        for result, (_, patience) in zip(ended, asked, strict=True):
            assert result is None or (patience is not None and isinstance(result, asyncio.CancelledError))
        # All places are free again: as many as there are can be taken at once.
        await asyncio.gather(*(ask(transport, f"/last{number}") for number in range(connections)))
        assert transport._pool is not None
        assert not transport._pool.is_used
        assert transport._pool.requests._free._value == connections
        await transport.close()

    with (
        patch("podlife.client.dialer.connect", connect),
        patch("podlife.client.http_transport._REQUEST_CONNECTIONS", connections),
    ):
        _run(story())


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _run(story: Coroutine[Any, Any, None]) -> None:
    complaints: list[str] = []
    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
        runner.run(story)
    assert complaints == []
