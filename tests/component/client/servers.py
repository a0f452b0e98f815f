"""Servers on loopback that behave as badly as a test asks them to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from podlife.client import Client, Connection
from podlife.client.credentials import Credential
from tests.component.client.authority import Authority

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def whole(body: bytes, *headers: bytes) -> bytes:
    """An answer of success."""
    return (
        HEAD + b"".join(each + b"\r\n" for each in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body
    )


def pod(name: str) -> bytes:
    return whole(json.dumps({"metadata": {"name": name}}).encode())


class Recording:
    """Answers every request with this object, and remembers what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[web.Request] = []

    async def __call__(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        return web.json_response(self.answer)


class Renewable:
    """Credentials with a certificate that can be replaced, as a plugin's is."""

    def __init__(self, certificate: bytes = b"", key: bytes = b"") -> None:
        self.credential = Credential(certificate=certificate, key=key)

    async def current(self) -> Credential:
        return self.credential

    async def renew(self, refused: Credential) -> bool:
        return False


def answering(*pieces: bytes, is_left_open: bool = True) -> Script:
    """Writes this after the head of a request; the connection then ends with the client, or at once."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(pieces))
        if is_left_open:
            await reader.read()

    return script


@asynccontextmanager
async def client_of(script: Script, *, timeout_seconds: float = 60.0) -> AsyncIterator[Client]:
    async with (
        serve_raw(script) as server,
        Client.connect(Connection(server), timeout_seconds=timeout_seconds) as client,
    ):
        yield client


@asynccontextmanager
async def serve(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """An HTTP server that answers every request with `handler`; gives its address."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.01)  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serve_raw(script: Script) -> AsyncIterator[str]:
    """A server that speaks no HTTP of its own: after the head of a request the script writes what it likes."""

    # A connection that is neither read nor written is known to nobody else: the garbage collector would take it, with
    # the script that waits in it, at any moment.
    talking: set[asyncio.Task[None] | None] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.add(asyncio.current_task())
        try:
            await reader.readuntil(b"\r\n\r\n")
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            talking.discard(asyncio.current_task())
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def listen(talk: Script, authority: Authority | None = None) -> AsyncIterator[Connection]:
    """A server that says what it likes from the first byte on, over TLS with an authority; the connection to it."""
    talks: set[asyncio.Task[Any]] = set()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                await talk(reader, writer)
        finally:
            talks.discard(task)
            writer.transport.abort()

    context = authority.server_context() if authority else None
    server = await asyncio.start_server(guarded, "127.0.0.1", 0, ssl=context)
    address = f"{'https' if authority else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield Connection(address, certificate_authority=authority.pem if authority else b"")
    finally:
        server.close()
        for task in list(talks):
            task.cancel()
        await asyncio.sleep(0.01)


def tunnel_of(asked: list[bytes]) -> Script:
    """A proxy that only passes bytes on; `asked` is what it was asked for."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head)
        host, _, port = head.split()[1].decode().rpartition(":")
        to_reader, to_writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    sink.write(data)
            sink.transport.abort()

        try:
            await asyncio.gather(pass_on(reader, to_writer), pass_on(to_reader, writer))
        finally:
            to_writer.close()

    return talk
