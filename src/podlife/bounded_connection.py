"""Connections of an HTTP server that cost little before the client is authenticated.

Anyone who can connect can send endless headers, or nothing at all. So the request line and headers have a limit for
all of their bytes, the first request of a connection must begin within a time, and the number of unauthenticated
connections is limited: one more closes the oldest, so that idle ones keep no client out.

aiohttp limits each header and their number, not their sum. Reading bodies is left to the servers.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from collections.abc import Awaitable, Callable
from ssl import SSLContext
from typing import Any, cast

import yarl._url
from aiohttp import StreamReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from podlife.aio import cancel_and_wait, spawn
from podlife.memory import empty_caches_of, give_back_soon

# The addresses of the last requests.
empty_caches_of(yarl._url)

log = logging.getLogger(__name__)

_MOST_QUOTED = 256
_WARN_SECONDS, _ACCEPT_AGAIN_SECONDS = 60.0, 0.5
# How long a client may take to read why it was refused.
_FAREWELL_SECONDS = 2.0
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 35\r\nConnection: close\r\n\r\n"
    b"431 Request Header Fields Too Large"
)


class BoundedConnection(web.RequestHandler):
    """The server calls `request_begins` and `request_ends` around every request."""

    __slots__ = (
        "_body",
        "_first_head",
        "_first_head_seconds",
        "_head_bytes",
        "_is_unreadable",
        "_most_head_bytes",
        "_request",
        "_socket",
    )

    def __init__(
        self, server: web.Server, *, most_head_bytes: int, first_head_seconds: float, **settings: Any
    ) -> None:
        super().__init__(server, **settings)
        self._most_head_bytes = most_head_bytes
        self._first_head_seconds = first_head_seconds
        self._first_head: asyncio.TimerHandle | None = None
        # Bytes of incomplete headers, and the body of the last complete request.
        self._head_bytes = 0
        self._body: StreamReader | None = None
        self._request: web.BaseRequest | None = None
        # Set until the connection is lost; the library drops its own reference when it is told to close.
        self._socket: asyncio.WriteTransport | None = None
        # Nothing after unparsable headers can be parsed.
        self._is_unreadable = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # uvloop's transports are not subclasses of asyncio's.
        self._socket = cast("asyncio.WriteTransport", transport)
        self._first_head = self._loop.call_later(self._first_head_seconds, self.drop)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget_first_head()
        self._socket = None
        super().connection_lost(exc)
        give_back_soon()

    def data_received(self, data: bytes) -> None:
        if self._is_unreadable:
            return
        waiting, is_body = len(self._messages), self._is_receiving_body()
        super().data_received(data)
        if len(self._messages) > waiting:
            self._head_bytes = 0
            self._body = self._messages[-1][1]
            self._shorten_failure()
            # Pipelined requests that wait count together.
            size = sum(_size_of(message) for message, _ in self._messages)
        elif not is_body:
            size = self._head_bytes = self._head_bytes + len(data)
        else:
            return
        if size > self._most_head_bytes:
            self._refuse_head()

    def _shorten_failure(self) -> None:
        """Keep only what the response says of a parser error, which quotes all unparsable input and whose traceback
        would keep that until the next garbage collection."""
        message: Any
        message, body = self._messages[-1]
        failure = getattr(message, "exc", None)
        if failure is None:
            return
        self._is_unreadable = True
        failure.__traceback__ = None
        text = message.message[:_MOST_QUOTED]
        short = HttpProcessingError(code=message.status, message=text)
        self._messages[-1] = (type(message)(message.status, short, text), body)

    def request_begins(self, request: web.BaseRequest) -> None:
        self._forget_first_head()
        self._request = request

    def request_ends(self) -> None:
        self._request = None

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request."""
        return self._request is None and self._socket is not None

    def drop(self) -> None:
        """Close it at once. An orderly end of TLS waits up to 30 s for the client, and keeps all that was read."""
        self.force_close()
        if self._socket is not None:
            self._socket.abort()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Invalid HTTP is logged in one line, without a traceback."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        log.debug("invalid HTTP request from %s: %s", request.remote, exc)
        response = web.Response(status=status, text=f"{status} invalid HTTP request\n")
        response.force_close()
        return response

    def _is_receiving_body(self) -> bool:
        """Whether a body, or an upgraded stream, is being received; both have backpressure."""
        if self._body is not None and not self._body.is_eof():
            return True
        return self._request is not None and hdrs.UPGRADE in self._request.headers

    def _refuse_head(self) -> None:
        self._messages.clear()
        if self._request is None and self.transport is not None:
            self.transport.write(_TOO_LARGE)
            self.force_close()
            self._loop.call_later(_FAREWELL_SECONDS, self.drop)
        else:
            # A response is being written: it is the last one.
            self.close()

    def _forget_first_head(self) -> None:
        if self._first_head is not None:
            self._first_head.cancel()
            self._first_head = None


def _size_of(message: Any) -> int:
    """Size of a request's line and headers."""
    headers = getattr(message, "raw_headers", ())
    return len(getattr(message, "path", "")) + sum(len(name) + len(value) for name, value in headers)


class UnauthenticatedConnections:
    """Connections whose client is not authenticated yet, oldest first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._connections: dict[BoundedConnection, None] = {}
        self._closed, self._warned_at = 0, -math.inf

    def add(self, connection: BoundedConnection) -> None:
        self._connections[connection] = None
        if len(self._connections) > self._most:
            oldest = next(iter(self._connections))
            self.forget(oldest)
            self._warn()
            oldest.drop()

    def _warn(self) -> None:
        """Once a minute: a client that opens very many connections must not fill the log."""
        self._closed += 1
        if (now := time.monotonic()) - self._warned_at >= _WARN_SECONDS:
            log.warning("closed %d of more than %d unauthenticated connections", self._closed, self._most)
            self._closed, self._warned_at = 0, now

    def forget(self, connection: BoundedConnection) -> None:
        self._connections.pop(connection, None)

    def __contains__(self, connection: BoundedConnection) -> bool:
        return connection in self._connections


def enable_keepalive(listener: socket.socket) -> None:
    """Detect a client that vanished within two minutes; accepted connections inherit this."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


class _OpenConnection(BoundedConnection):
    __slots__ = ()

    def connection_lost(self, exc: BaseException | None) -> None:
        assert isinstance(self._manager, OpenServer)
        self._manager.unauthenticated.forget(self)
        super().connection_lost(exc)


class OpenServer(web.Server):
    """A server without authentication, for small requests: heads, connections and time are bounded."""

    def __init__(
        self,
        answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        most_connections: int = 100,
        most_head_bytes: int = 16 * 1024,
        first_head_seconds: float = 10.0,
    ) -> None:
        super().__init__(self._bounded, handler_cancellation=True)
        self._answer = answer
        self._most_head_bytes = most_head_bytes
        self._first_head_seconds = first_head_seconds
        self.unauthenticated = UnauthenticatedConnections(most_connections)

    def __call__(self) -> web.RequestHandler:
        connection = _OpenConnection(
            self,
            loop=self._loop,
            access_log=None,
            lingering_time=1.0,
            max_line_size=self._most_head_bytes,
            max_field_size=self._most_head_bytes,
            most_head_bytes=self._most_head_bytes,
            first_head_seconds=self._first_head_seconds,
        )
        self.unauthenticated.add(connection)
        return connection

    async def _bounded(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, BoundedConnection)
        connection.request_begins(request)
        try:
            return await self._answer(request)
        finally:
            connection.request_ends()


async def accept_tls(
    listener: socket.socket, server: OpenServer, tls: SSLContext, *, most_handshakes: int, seconds: float
) -> None:
    """Accept connections until cancelled. Of too many whose TLS handshake is not done the oldest is closed: an event
    loop's own server has no bound for them."""
    loop = asyncio.get_running_loop()
    pending: dict[asyncio.Task[None], None] = {}
    try:
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                # Too many files are open, or the client is gone already.
                log.debug("cannot accept a connection: %s", error)
                await asyncio.sleep(_ACCEPT_AGAIN_SECONDS)
                continue
            shaking = _handshake(connection, server, tls, seconds)
            task = spawn(shaking, name="TLS handshake", on_failure=lambda _: None)
            pending[task] = None
            task.add_done_callback(lambda done: pending.pop(done, None))
            if len(pending) > most_handshakes:
                next(iter(pending)).cancel()
    finally:
        for task in list(pending):
            await cancel_and_wait(task)


async def _handshake(connection: socket.socket, server: OpenServer, tls: SSLContext, seconds: float) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            server, connection, ssl=tls, ssl_handshake_timeout=seconds
        )
    except OSError as error:
        log.debug("TLS handshake failed: %s", error)
        connection.close()
