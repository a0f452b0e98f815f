"""A connection for one request: plain, or TLS without verification.

Names are resolved in separate threads. Pods choose the names, and an unresponsive name server blocks a thread long
after the request has timed out. In the shared thread pool a few such names would keep the node from setting up volumes
or removing containers; here their number is bounded, and they do not keep the process from exiting.

TLS runs over memory buffers, not in the event loop, to distinguish a server that speaks plain HTTP from one with
incompatible TLS: a hook is retried over HTTP only in the first case.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from ipaddress import ip_address
from typing import Protocol

from podlife.kubelet.probe.target import NoResponseError, ProbeError, dial_error, host_port

_CHUNK_BYTES = 16 * 1024
_MAX_LOOKUPS = 16
_lookup_slots = threading.BoundedSemaphore(_MAX_LOOKUPS)


class PlainResponseError(NoResponseError):
    """The server answered a TLS handshake with plain HTTP."""


class Stream(Protocol):
    async def send(self, data: bytes) -> None: ...

    async def receive(self) -> bytes:
        """The next data; empty at the end."""
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
    """A connection, closed in the end without waiting for the server."""
    try:
        reader, writer = await _dial(host, port)
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
        # Not `close`, which would wait for the server to read pending data.
        writer.transport.abort()


async def _dial(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Tries the host's addresses in order."""
    *others, last = await resolve(host)
    for address in others:
        with suppress(OSError):
            return await asyncio.open_connection(address, port)
    return await asyncio.open_connection(last, port)


async def resolve(host: str) -> list[str]:
    """At least one address. Raises OSError and UnicodeError for an unknown name, `ProbeError` on too many lookups."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    if not _lookup_slots.acquire(blocking=False):
        raise ProbeError(f"lookup {host}: the node waits for {_MAX_LOOKUPS} other names already")
    loop = asyncio.get_running_loop()
    result: asyncio.Future[list[str]] = loop.create_future()
    thread = threading.Thread(target=_lookup, args=(host, result, loop), name=f"look up {host}", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        _lookup_slots.release()
        raise ProbeError(f"lookup {host}: {error}") from None
    return await result


def _lookup(host: str, result: asyncio.Future[list[str]], loop: asyncio.AbstractEventLoop) -> None:
    addresses: list[str] = []
    failure: Exception | None = None
    try:
        listed = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(each[4][0]) for each in listed))
    except (OSError, ValueError) as error:
        failure = error
    finally:
        _lookup_slots.release()
    # The caller may be gone, and the event loop closed.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_set_result, result, addresses, failure)


def _set_result(result: asyncio.Future[list[str]], addresses: list[str], failure: Exception | None) -> None:
    if result.done():
        return
    if failure is not None:
        result.set_exception(failure)
    else:
        result.set_result(addresses)


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
def _unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Tls:
    def __init__(self, plain: _Plain, host: str) -> None:
        self._plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _unverified_context().wrap_bio(self._incoming, self._outgoing, server_hostname=host)
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
        # Requests are small and have no body, so they fit into the memory buffer.
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
