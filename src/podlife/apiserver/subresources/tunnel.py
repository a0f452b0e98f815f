"""Passes an upgrade request on to a server behind this one, and then every byte in both directions.

As upstream's upgrade-aware proxy: whatever both ends speak (a WebSocket with any subprotocol, SPDY) is not looked at.
The response of a server that refuses is the client's response. Memory is bounded, and the slower reader sets the pace;
connecting and the response have a deadline, the stream after it has none.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from podlife.aio import cancel_and_wait, spawn
from podlife.errors import ApiError
from podlife.wire import Channel, Request, Response, Upgrade

_HEAD_BYTES = 64 * 1024
_REFUSAL_BYTES = 50_000
_CHUNK_BYTES = 64 * 1024
_ANSWER_SECONDS = 30.0
_REFUSAL_SECONDS = 10.0
# Addressed to the next hop, or to this server alone.
_HOP_BY_HOP = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    )
)
_OWN = frozenset(("authorization", "content-length", "expect"))


@dataclass(frozen=True, slots=True)
class Backend:
    """Where a request goes. With TLS, the server must have a certificate for `server_name` if `tls` demands one."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str = ""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls is None else 'https'}://{host}:{self.port}"


def is_upgrade(request: Request) -> bool:
    headers = _lower(request)
    return bool(headers.get("upgrade")) and "upgrade" in headers.get("connection", "").lower()


def end_to_end_headers(headers: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Without those of one connection, and those that `Connection` names."""
    pairs = list(headers)
    named = {
        part.strip().lower()
        for key, value in pairs
        if key.lower() == "connection"
        for part in value.split(",")
    }
    for key, value in pairs:
        if key.lower() not in _HOP_BY_HOP and key.lower() not in named:
            yield key, value


def passed_on_headers(request: Request) -> Iterator[tuple[str, str]]:
    """Headers of a request for the server behind this one: without the credentials that were for this one."""
    forwarded_for = ""
    for key, value in end_to_end_headers(request.headers.items()):
        lower = key.lower()
        if lower == "x-forwarded-for":
            forwarded_for = f"{forwarded_for}, {value}" if forwarded_for else value
        elif lower not in _OWN and not lower.startswith(("impersonate-", "x-remote-")):
            yield key, value
    if request.source_ip:
        yield "X-Forwarded-For", ", ".join(filter(None, (forwarded_for, request.source_ip)))


async def tunnel(backend: Backend, target: str, request: Request, *, connect_seconds: float) -> Response:
    """The response to an upgrade request that is sent to `target`, a path with its query, both quoted."""
    try:
        async with asyncio.timeout(connect_seconds):
            reader, writer = await asyncio.open_connection(
                backend.host,
                backend.port,
                ssl=backend.tls,
                server_hostname=(backend.server_name or backend.host) if backend.tls else None,
                limit=_HEAD_BYTES,
            )
    except (OSError, TimeoutError) as error:
        raise ApiError(f"error dialing backend: {why_unreachable(backend, error)}", reason="") from None
    try:
        writer.write(_head(backend, target, request) + request.body)
        async with asyncio.timeout(_ANSWER_SECONDS):
            status, headers = _parse(await reader.readuntil(b"\r\n\r\n"))
        if status == 101:
            relay = partial(_relay, reader, writer)
            return Response(101, headers=headers, upgrade=Upgrade(None, relay))
        return await _refusal(status, headers, reader, writer)
    except (OSError, TimeoutError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
        writer.transport.abort()
        why = "unexpected EOF" if isinstance(error, EOFError) else str(error) or "context deadline exceeded"
        raise ApiError(why, reason="") from None
    except BaseException:
        writer.transport.abort()
        raise


def why_unreachable(backend: Backend, error: BaseException) -> str:
    """In the words that clients know."""
    number = getattr(error, "errno", None)
    if isinstance(error, ssl.SSLError):
        return str(error)
    if isinstance(error, TimeoutError) and number is None:
        return f"dial tcp {backend.url.partition('//')[2]}: i/o timeout"
    if isinstance(number, int) and number > 0:
        return f"dial tcp {backend.url.partition('//')[2]}: connect: {os.strerror(number).lower()}"
    return str(error)


def _head(backend: Backend, target: str, request: Request) -> bytes:
    given = _lower(request)
    lines = [f"{request.method} {target} HTTP/1.1"]
    if "host" not in given:
        lines.append(f"Host: {backend.url.partition('//')[2]}")
    lines += [f"{key}: {value}" for key, value in passed_on_headers(request)]
    lines += ["Connection: Upgrade", f"Upgrade: {given['upgrade']}", f"Content-Length: {len(request.body)}"]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header contains a line break")
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def _parse(head: bytes) -> tuple[int, list[tuple[str, str]]]:
    first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1.") or not status[:3].isdecimal():
        raise ValueError(f"malformed HTTP response {first[:100]!r}")
    pairs = [line.partition(":") for line in rest]
    return int(status[:3]), [(key.strip(), value.strip()) for key, _, value in pairs]


async def _refusal(
    status: int, headers: list[tuple[str, str]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Response:
    lower = {key.lower(): value for key, value in headers}
    try:
        if status < 400:
            raise ApiError(f"invalid upgrade response: status code {status}", reason="")
        length = lower.get("content-length", "")
        most = min(int(length), _REFUSAL_BYTES) if length.isdecimal() else 0
        async with asyncio.timeout(_REFUSAL_SECONDS):
            body = await reader.readexactly(most)
    finally:
        writer.transport.abort()
    return Response(status, body, lower.get("content-type", "text/plain; charset=utf-8"))


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: Channel) -> None:
    async def to_backend() -> None:
        while (data := await client.receive()) is not None:
            writer.write(data)
            await writer.drain()

    async def to_client() -> None:
        while data := await reader.read(_CHUNK_BYTES):
            await client.send(data)

    # A failure means that one side disconnected; there is nothing to report.
    tasks = [
        spawn(direction(), name=f"tunnel: {direction.__name__}", on_failure=lambda _: None)
        for direction in (to_backend, to_client)
    ]
    try:
        # As upstream: when one direction has ended, so has the connection.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(*tasks)
        writer.close()
        await client.close()


def _lower(request: Request) -> dict[str, str]:
    return {key.lower(): value for key, value in request.headers.items()}
