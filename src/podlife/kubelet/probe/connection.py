"""A connection for one request: plain, or TLS without verification.

TLS runs over memory buffers, not in the event loop, to tell a server that speaks plain HTTP from one whose TLS is not
understood: a hook is retried over HTTP only in the first case.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Protocol

from podlife.kubelet.probe.resolver import resolve
from podlife.kubelet.probe.target import NoResponseError, dial_error, host_port

_CHUNK_BYTES = 16 * 1024


class PlainResponseError(NoResponseError):
    """Asked with TLS, the other side answered with plain HTTP."""


class Stream(Protocol):
    async def send(self, data: bytes) -> None: ...

    async def receive(self) -> bytes:
        """What came next; nothing at the end."""
        ...


async def tcp_connect(host: str, port: int, *, seconds: float) -> None:
    """Open a connection and close it. Raises `NoResponseError` and `ProbeError`."""
    try:
        async with asyncio.timeout(seconds), connected(host, port):
            return
    except TimeoutError:
        raise NoResponseError(f"dial tcp {host_port(host, port)}: i/o timeout") from None


@asynccontextmanager
async def connected(host: str, port: int, *, is_tls: bool = False) -> AsyncIterator[Stream]:
    """Closed at the end without waiting for the other side."""
    try:
        reader, writer = await _dialled(host, port)
    except OSError as error:
        raise dial_error(error, host, port) from None
    except (ValueError, UnicodeError):
        raise NoResponseError(f"dial tcp: lookup {host!r}: no such host") from None
    try:
        plain = _Plain(reader, writer)
        if not is_tls:
            yield plain
            return
        secured = _Tls(plain, host)
        await secured.shake_hands()
        yield secured
    finally:
        # Not `close`: that would wait for the other side to read what was sent.
        writer.transport.abort()


async def _dialled(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """By each of the host's addresses, until one answers."""
    *others, last = await resolve(host)
    for address in others:
        with suppress(OSError):
            return await asyncio.open_connection(address, port)
    return await asyncio.open_connection(last, port)


class _Plain:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise NoResponseError(_text(error, "write")) from None

    async def receive(self) -> bytes:
        try:
            return await self._reader.read(_CHUNK_BYTES)
        except OSError as error:
            raise NoResponseError(_text(error, "read")) from None


@cache
def _trusting_everybody() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Tls:
    def __init__(self, plain: _Plain, host: str) -> None:
        self._plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _trusting_everybody().wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._is_first = True

    async def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._feed():
                    raise NoResponseError("EOF") from None
            except ssl.SSLError as error:
                raise NoResponseError(f"tls: {error.reason or error}") from None
            else:
                return await self._flush()

    async def send(self, data: bytes) -> None:
        # Small enough for the memory between: a request, never a body.
        self._tls.write(data)
        await self._flush()

    async def receive(self) -> bytes:
        while True:
            try:
                return self._tls.read(_CHUNK_BYTES)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._feed():
                    return b""
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            except ssl.SSLError as error:
                raise NoResponseError(f"tls: {error.reason or error}") from None

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await self._plain.send(data)

    async def _feed(self) -> bool:
        data = await self._plain.receive()
        if self._is_first and data.startswith(b"HTTP/"):
            raise PlainResponseError("http: server gave HTTP response to HTTPS client")
        self._is_first = False
        self._incoming.write(data)
        return bool(data)


def _text(error: OSError, what: str) -> str:
    return f"{what}: {(error.strerror or str(error)).lower()}"
