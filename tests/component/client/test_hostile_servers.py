"""Servers and proxies that mean harm, or are broken: what they send is never taken for the answer to another request,
never holds a caller past its deadline and never fills the memory."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
from collections.abc import AsyncGenerator

import pytest

from podlife.client import PODS, DeadlineError, LogOptions, NotSentError
from podlife.client.http_connection import CutOffError, HttpConnection
from podlife.errors import ApiError, UnreachableError
from tests.component.client.servers import HEAD, answering, client_of, pod, serve_raw
from tests.kit.moved_time import pass_time

SMUGGLED = HEAD + b'X-Smuggled: 1\r\nContent-Length: 14\r\n\r\n{"evil": true}'


async def _next(pieces: AsyncGenerator[bytes, None]) -> bytes:
    return await anext(pieces)


@pytest.mark.parametrize(
    "extra", [SMUGGLED, SMUGGLED[:20], SMUGGLED[:-5], b"garbage", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
async def test_what_follows_an_answer_is_no_part_of_it_nor_of_the_next(extra: bytes) -> None:
    connections = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        name = f"pod-{connections}"
        while True:
            writer.write(pod(name) + extra)
            await reader.readuntil(b"\r\n\r\n")

    async with client_of(script) as client:
        for number in range(1, 4):
            reply = await client.request("GET", "/api/v1/namespaces/ns/pods/a")
            assert json.loads(reply.body) == {"metadata": {"name": f"pod-{number}"}}
            assert "x-smuggled" not in reply.headers
    assert connections == 3


async def test_what_comes_while_nobody_asks_ends_the_connection() -> None:
    connections = 0
    speak, has_ended = asyncio.Event(), asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(pod(f"pod-{connections}"))
        if connections == 1:
            await speak.wait()
            writer.write(SMUGGLED)
        await reader.read()
        has_ended.set()

    async with client_of(script) as client:
        await client.get(PODS, "a", "ns")
        speak.set()
        async with asyncio.timeout(60):
            await has_ended.wait()
        assert await client.get(PODS, "a", "ns") == {"metadata": {"name": "pod-2"}}


@pytest.mark.parametrize(
    "drip",
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x"),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (
            HEAD + b"Content-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\n" + gzip.compress(b"")[:10],
            b"\0",
        ),
    ],
    ids=["header", "hints", "chunk extension", "trailer", "body", "compressed"],
)
async def test_an_answer_that_comes_in_drips_meets_the_deadline(drip: tuple[bytes, bytes]) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(drip[0])
        while True:
            writer.write(drip[1])
            await writer.drain()
            await asyncio.sleep(0.005)

    async with client_of(script, timeout_seconds=0.1) as client:
        async with asyncio.timeout(60):
            with pytest.raises(UnreachableError):
                await client.get(PODS, "a", "ns")
        assert client.limiter.state.in_flight == 0


async def test_an_answer_that_comes_fast_and_never_ends_meets_the_deadline() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        while True:
            writer.write(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")
            await writer.drain()
            sent += 1
            if sent == 100:
                pass_time(60)

    async with client_of(script) as client, asyncio.timeout(600):
        with pytest.raises(DeadlineError):
            await client.get(PODS, "a", "ns")


@pytest.mark.parametrize(
    "flood",
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096),
        (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n" * 1000),
        (b"HTTP/1.1 200 ", b"x" * 4096),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 100),
        (b"HTTP/1.1 100 Continue\r\nContent-Length: 100000000\r\n\r\n", b"x" * 4096),
        (b"HTTP/1.1 000 What\r\nContent-Length: 100000000\r\n\r\n", b"x" * 4096),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 4096),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n" * 1000),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 4096),
    ],
    ids=["header", "headers", "reason", "hints", "100", "000", "trailer", "trailers", "chunk extension"],
)
async def test_what_is_neither_head_nor_body_is_taken_in_no_longer_than_a_head_may_be(
    flood: tuple[bytes, bytes],
) -> None:
    sent = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(flood[0])
        while sent < 64 << 20:
            writer.write(flood[1])
            await writer.drain()
            sent += len(flood[1])

    async with client_of(script) as client:
        with pytest.raises(UnreachableError) as raised:
            await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
    assert not isinstance(raised.value, DeadlineError)
    assert sent < 32 << 20


async def test_what_follows_the_body_does_not_change_the_head() -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-A: 2\r\nX-B: 3\r\n\r\n"
    async with client_of(answering(HEAD + b"X-A: 1\r\n" + body)) as client:
        reply = await client.request("GET", "/version")
    assert (reply.body, reply.headers["x-a"]) == (b"{}", "1")
    assert "x-b" not in reply.headers


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", HEAD + b"Content-Length: 100\r\n\r\n"),
        ("HEAD", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", HEAD + b"Content-Encoding: gzip\r\nContent-Length: 100\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"),
        ("GET", HEAD + b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"),
    ],
)
async def test_an_answer_without_a_body_is_complete_with_its_head(method: str, answer: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(pod("next"))
        await reader.read()

    async with client_of(script) as client:
        assert (await client.request(method, "/version")).body == b""


# Whatever may still come.
NEVER_AN_ANSWER = [
    b"SSH-2.0-OpenSSH_9.2\r\n",
    HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
    HEAD + b"X: " + b"x" * 200_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
]


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        HEAD + b"Content-Length: -2\r\n\r\n{}",
        HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}",
        HEAD + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 30\r\n\r\n" + gzip.compress(b"{}")[:12],
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 44\r\n\r\n" + 2 * gzip.compress(b"{}"),
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 12\r\n\r\n" + gzip.compress(b"{}")[:12],
        *NEVER_AN_ANSWER,
    ],
)
async def test_what_is_no_answer_or_may_be_read_in_two_ways_is_told_in_one_line(answer: bytes) -> None:
    async with client_of(answering(answer, is_left_open=answer in NEVER_AN_ANSWER)) as client:
        with pytest.raises(UnreachableError) as raised:
            await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
    assert "\n" not in str(raised.value)


async def test_gzip_is_unpacked_however_it_is_spelled() -> None:
    packed = gzip.compress(b'{"a": 1}')

    async with client_of(
        answering(HEAD + b"Content-Encoding: GZip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
    ) as client:
        assert await client.get(PODS, "a", "ns") == {"a": 1}


async def test_unpacking_lets_others_have_their_turn() -> None:
    packed = gzip.compress(b"a" * (64 << 20))

    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with client_of(
        answering(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
    ) as client:
        pieces = client.logs("a", "ns")
        await anext(pieces)
        counting = asyncio.get_running_loop().create_task(count())
        total = sum([len(piece) async for piece in pieces])
        counting.cancel()
    assert total == 63 << 20
    assert turns > 30


async def test_an_early_answer_to_a_request_that_is_not_sent_whole_ends_the_connection() -> None:
    connections = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(pod(f"pod-{connections}"))
        if connections > 1:
            await reader.read()
        else:
            # It reads no more of the request, and would never see another one.
            await asyncio.Event().wait()

    async with client_of(script) as client:
        large = {"metadata": {"name": "a"}, "data": {"a": "x" * (32 << 20)}}
        assert await client.create(PODS, large, "ns") == {"metadata": {"name": "pod-1"}}
        # The server that waits must outlive a look for garbage.
        gc.collect()
        assert await client.get(PODS, "a", "ns") == {"metadata": {"name": "pod-2"}}


@pytest.mark.parametrize("asked", ["9" * 5000, "9" * 400, "99999999999"])
@pytest.mark.parametrize("where", ["header", "body"])
async def test_a_server_that_asks_to_wait_for_ever_is_not_obeyed_for_ever(asked: str, where: str) -> None:
    answers = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answers
        answers += 1
        if answers > 1:
            writer.write(pod("a"))
            return
        status = b'{"kind":"Status","details":{"retryAfterSeconds":%s}}' % asked.encode()
        body = status if where == "body" else b"{}"
        header = b"Retry-After: %s\r\n" % asked.encode() if where == "header" else b""
        writer.write(b"HTTP/1.1 429 No\r\n" + header + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async with client_of(script) as client:
        with pytest.raises(ApiError) as raised:
            await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
        assert raised.value.code == 429
        now = asyncio.get_running_loop().time()
        assert client.limiter.state.paused_until <= now + 600


async def test_a_connection_that_closed_before_it_was_asked_has_sent_nothing() -> None:
    listener = await asyncio.start_server(lambda _, writer: writer.transport.abort(), "127.0.0.1", 0)
    connection = HttpConnection(1 << 16)
    async with listener:
        host, port = listener.sockets[0].getsockname()
        await asyncio.get_running_loop().create_connection(lambda: connection, host, port)
        while connection.is_open:
            await asyncio.sleep(0)
        with pytest.raises(NotSentError):
            await connection.exchange(b"GET / HTTP/1.1\r\n\r\n", seconds=60)


async def test_a_stream_without_a_length_that_we_end_ourselves_is_not_taken_for_complete() -> None:
    async with client_of(answering(HEAD + b"\r\nline")) as client:
        pieces = client.logs("a", "ns", LogOptions(follow=True))
        assert await anext(pieces) == b"line"
        rest = asyncio.get_running_loop().create_task(_next(pieces))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(UnreachableError):
            await rest


async def test_no_more_than_one_exchange_is_under_way() -> None:
    async with serve_raw(answering()) as server:
        connection = HttpConnection(1 << 16)
        port = int(server.rpartition(":")[2])
        await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", port)
        message = b"GET / HTTP/1.1\r\n\r\n"
        first = asyncio.get_running_loop().create_task(connection.exchange(message, seconds=60))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await connection.exchange(message, seconds=60)
        connection.abort()
        with pytest.raises(CutOffError):
            await first
