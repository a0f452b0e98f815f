"""Connections in trouble, on both event loops: closed and renewed in mid-flight, given up at any moment, through
proxies that lie. Nothing leaks, nothing is sent that should not be, and nobody gets another one's answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import os
import queue
import random
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from podlife.client import PODS, Client, Connection, HttpTransport, LogOptions, NotSentError, TokenAuth
from podlife.client.credentials import Credential
from podlife.client.dialer import _not_connected
from podlife.client.http_connection import HttpConnection
from podlife.errors import UnreachableError
from podlife.wire import Query, Request
from tests.component.client.authority import Authority
from tests.component.client.servers import HEAD, Renewable, listen, pod, serve_raw, tunnel_of, whole
from tests.component.client.test_hostile_servers import SMUGGLED
from tests.kit.wait import until


def on_both_loops(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test on asyncio's loop and on uvloop, and fails it for whatever the loop complains of afterwards."""

    @pytest.mark.parametrize(
        "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
    )
    @functools.wraps(test)
    def run(*, new_loop: Callable[[], asyncio.AbstractEventLoop], **fixtures: Any) -> None:
        complaints: list[str] = []
        with warnings.catch_warnings():
            # What earlier tests have left to the collector is no complaint of this one.
            warnings.simplefilter("ignore")
            gc.collect()
        with warnings.catch_warnings(record=True) as warned, asyncio.Runner(loop_factory=new_loop) as runner:
            warnings.simplefilter("always")
            runner.get_loop().set_exception_handler(lambda _, context: complaints.append(str(context)))
            runner.run(_within(test(**fixtures), 120))
        with warnings.catch_warnings(record=True) as warned_later:
            warnings.simplefilter("always")
            gc.collect()
        warned += warned_later
        complaints += [str(each.message) for each in warned if each.category is ResourceWarning]
        assert complaints == []

    signature = inspect.signature(test)
    new_loop = inspect.Parameter("new_loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), new_loop])
    return run


async def _within(story: Coroutine[Any, Any, None], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await story


async def echo_names(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request with the last part of its path: whoever gets another one's answer will see it."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        name = head.split()[1].rpartition(b"/")[2].decode()
        answer = pod(name)
        cut = random.Random(name).randrange(len(answer))
        writer.write(answer[:cut])
        await asyncio.sleep(0)
        writer.write(answer[cut:])


@on_both_loops
async def test_a_connection_that_ends_at_any_byte_of_an_answer_gives_the_whole_answer_or_none() -> None:
    answers = [
        pod("a"),
        HEAD + b'Transfer-Encoding: chunked\r\n\r\n8;x=y\r\n{"a": 1}\r\n0\r\nX: y\r\n\r\n',
        b"HTTP/1.1 100 Continue\r\n\r\n" + pod("a"),
    ]
    cut = 0
    answer = b""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer[:cut])
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with listen(talk) as connection:
        for each in answers:
            answer = each
            async with Client.connect(connection) as client:
                for length in range(len(answer)):
                    cut = length
                    with pytest.raises(UnreachableError):
                        await client.request("POST", "/x")
                cut = len(answer)
                assert (await client.request("POST", "/x")).status == 200


@on_both_loops
async def test_a_large_body_over_tls_arrives_whole_though_its_reader_is_slow_and_its_server_gone(
    authority: Authority,
) -> None:
    body = random.Random(1).randbytes(6 << 20)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(whole(body))
        writer.close()
        await writer.wait_closed()

    async with listen(talk, authority) as connection, Client.connect(connection) as client:
        got = bytearray()
        async for piece in client.logs("a", "ns"):
            got += piece
            await asyncio.sleep(0.005)
        assert got == body


def connections() -> int:
    return sum(isinstance(each, HttpConnection) for each in gc.get_objects())


@on_both_loops
async def test_connections_that_have_ended_are_freed_without_the_garbage_collector(
    authority: Authority,
) -> None:
    """They have 250 KB and more each, and the collector may not run for hours."""
    answer = b""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.transport.abort()

    gc.disable()
    try:
        async with listen(talk, authority) as connection, Client.connect(connection) as client:
            before = connections()
            for each in (b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{", b"no HTTP\r\n\r\n", pod("a")):
                answer = each
                for _ in range(5):
                    with contextlib.suppress(UnreachableError):
                        await client.request("POST", "/x")
        async with Client.connect(connection) as client:
            for _ in range(5):
                with pytest.raises(UnreachableError):
                    await client.request("POST", "/x")
        await until(lambda: connections() <= before, "connections that have ended are kept", seconds=10)
    finally:
        gc.enable()


def request(path: str = "/x") -> Request:
    return Request("GET", path, Query(""), {})


@on_both_loops
async def test_who_waits_for_a_connection_when_the_client_closes_sends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("podlife.client.http_transport._REQUEST_CONNECTIONS", 2)
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
        await reader.read()

    loop = asyncio.get_running_loop()
    async with listen(talk) as connection:
        transport = HttpTransport(connection)
        tasks = [loop.create_task(transport.send(request(f"/{n}"), seconds=60)) for n in range(4)]
        while len(seen) < 2:
            await asyncio.sleep(0.001)
        await transport.close()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, UnreachableError) for each in ended)
        assert all(isinstance(each, NotSentError) and each.is_lasting for each in ended[2:])
        await asyncio.sleep(0.02)
    assert len(seen) == 2


@on_both_loops
async def test_who_is_connecting_when_the_client_closes_sends_nothing(authority: Authority) -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(pod("a"))
        await reader.read()

    async with listen(talk, authority) as connection:
        transport = HttpTransport(connection)
        task = asyncio.get_running_loop().create_task(transport.send(request(), seconds=60))
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(NotSentError):
            await task
        await asyncio.sleep(0.02)
    assert seen == []


@pytest.mark.parametrize("farewell", [b"", SMUGGLED])
@on_both_loops
async def test_a_connection_that_ended_or_spoke_behind_our_back_takes_no_request(farewell: bytes) -> None:
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(pod(f"pod-{connections}"))
        if connections == 1:
            await asyncio.to_thread(may_leave.wait)
            raw = writer.transport.get_extra_info("socket")
            os.write(raw.fileno(), farewell)
            raw.shutdown(socket.SHUT_WR)
            has_left.set()
        await reader.read()

    may_leave, has_left = threading.Event(), threading.Event()

    def serve_apart() -> None:
        async def serve() -> None:
            async with listen(talk) as connection:
                connections_made.put(connection)
                while not is_over.is_set():
                    await asyncio.sleep(0.002)

        asyncio.run(serve())

    connections_made: queue.Queue[Connection] = queue.Queue()
    is_over = threading.Event()

    server = threading.Thread(target=serve_apart)
    server.start()
    try:
        async with Client.connect(connections_made.get()) as client:
            created = await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
            assert created == {"metadata": {"name": "pod-1"}}
            # The loop stands still: what the server does now it cannot have told of.
            may_leave.set()
            has_left.wait(60)
            created = await client.create(PODS, {"metadata": {"name": "a"}}, "ns")
            assert created == {"metadata": {"name": "pod-2"}}
    finally:
        is_over.set()
        server.join()


@on_both_loops
async def test_a_stream_under_an_old_certificate_goes_on_and_ends_with_the_client(
    authority: Authority,
) -> None:
    has_ended = asyncio.Event()
    go_on = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"follow" not in head:
            writer.write(pod("a"))
            await reader.read()
            return
        writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        await go_on.wait()
        writer.write(b"1\r\nb\r\n")
        try:
            await reader.read()
        finally:
            has_ended.set()

    credentials = Renewable(*authority.issue("me"))
    async with listen(talk, authority) as connection:
        client = Client(HttpTransport(connection, credentials))
        pieces = client.logs("a", "ns", LogOptions(follow=True))
        assert await anext(pieces) == b"a"
        credentials.credential = Credential("", *authority.issue("me"))
        await client.get(PODS, "a", "ns")
        go_on.set()
        assert await anext(pieces) == b"b"
        await client.close()
        await has_ended.wait()
        with pytest.raises(UnreachableError):
            await anext(pieces)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000])
@on_both_loops
async def test_a_proxy_that_does_not_finish_its_answer_has_not_agreed(
    authority: Authority, answer: bytes
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with listen(talk) as proxy:
        connection = Connection("https://api.example", proxy_url=proxy.server)
        async with Client.connect(connection, timeout_seconds=60) as client:
            with pytest.raises(NotSentError, match=r"^the proxy for https://api\.example cannot be"):
                await client.get(PODS, "a", "ns")


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
@on_both_loops
async def test_a_proxy_that_says_nothing_more_meets_the_deadline(authority: Authority, after: bytes) -> None:
    open_ = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_
        open_ += 1
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(after)
            await reader.read()
        finally:
            open_ -= 1

    async with listen(talk) as proxy:
        connection = Connection("https://api.example", proxy_url=proxy.server)
        async with Client.connect(connection, timeout_seconds=0.1) as client:
            with pytest.raises(UnreachableError):
                await client.get(PODS, "a", "ns")
        while open_:
            await asyncio.sleep(0.001)


@on_both_loops
async def test_tls_goes_through_a_proxy_that_is_spoken_to_over_tls(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "authority.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    asked: list[bytes] = []

    async with listen(echo_names, authority) as server, listen(tunnel_of(asked), authority) as proxy:
        connection = replace(server, proxy_url=proxy.server, auth=TokenAuth("secret"))
        async with Client.connect(connection, timeout_seconds=60) as client:
            for name in ("a", "b"):
                assert await client.get(PODS, name, "ns") == {"metadata": {"name": name}}
    assert len(asked) == 1
    assert b"secret" not in asked[0]


@pytest.mark.parametrize(
    ("error", "is_lasting"),
    [
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), False),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), True),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), False),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), True),
        (ConnectionResetError(104, "Connection reset by peer"), False),
    ],
)
def test_what_passes_is_tried_again_and_what_lasts_is_not(error: OSError, is_lasting: bool) -> None:
    assert _not_connected(error, "https://api.example").is_lasting is is_lasting


@on_both_loops
async def test_connections_that_nobody_uses_any_more_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podlife.client.http_transport._IDLE_SECONDS", 0.05)
    open_ = most = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        try:
            await echo_names(reader, writer)
        finally:
            open_ -= 1

    async with listen(talk) as connection, Client.connect(connection) as client:
        await asyncio.gather(*(client.get(PODS, f"pod-{n}", "ns") for n in range(8)))
        # Some of them may have ended again by now.
        assert most > 2
        while open_ > 1:
            await client.get(PODS, "a", "ns")
            await asyncio.sleep(0.005)


async def test_a_server_that_hangs_in_the_tls_handshake_meets_the_deadline() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serve_raw(script) as server:
        connection = Connection(server.replace("http:", "https:"))
        async with Client.connect(connection, timeout_seconds=0.1) as client, asyncio.timeout(60):
            with pytest.raises(UnreachableError):
                await client.get(PODS, "a", "ns")
