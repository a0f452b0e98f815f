"""HTTP server: sockets and TLS on one side, `wire.Request` and `wire.Response` on the other.

It knows nothing of Kubernetes but the form of an error. Everything a client can make it hold is bounded: the body,
the headers, the time to send either, the time a reader may stall, the number of connections. HTTP/1.1 only;
WebSockets for upgrades. `bodies` reads and writes bodies.

Authentication and authorization are left to the handler; this module only passes on what TLS has verified.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import unquote

from aiohttp import WSMsgType, hdrs, web
from multidict import CIMultiDict

from podlife.apiserver.http.bodies import (
    SERVER_NAME,
    SLICE_BYTES,
    HttpLimits,
    StreamingConnection,
    headers_of,
    read_body,
    send_pieces,
    send_stream,
    status_of,
)
from podlife.bounded_connection import UnauthenticatedConnections, enable_keepalive
from podlife.errors import ApiError
from podlife.upgraded_connection import UpgradedConnection
from podlife.wire import WEBSOCKET_MESSAGE_BYTES, Channel, Handler, Peer, Query, Request, Upgrade

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 30.0

Identify = Callable[[Request], object]


class HttpServer:
    """Serves a handler on one address. `start` binds; `stop` ends streams and lets requests finish."""

    def __init__(
        self,
        handler: Handler,
        *,
        tls: ssl.SSLContext | None,
        limits: HttpLimits | None = None,
        identify: Identify | None = None,
    ) -> None:
        """`identify` raises ApiError for a client that cannot be authenticated: its body is not read."""
        self._handler = handler
        self._identify = identify
        self._tls = tls
        self._limits = limits or HttpLimits()
        self._listeners: list[asyncio.Server] = []
        self._server: _Server | None = None

    @property
    def port(self) -> int:
        """The bound port; if port 0 was requested, the one the system chose."""
        return int(self._listeners[0].sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        return len(self._server.connections) if self._server else 0

    async def start(self, host: str, port: int) -> None:
        """Listen, again at another address if called again; raises OSError if the address cannot be bound."""
        self._server = self._server or _Server(self._handler, self._limits, self._identify)
        listener = await asyncio.get_running_loop().create_server(
            self._server,
            host,
            port,
            ssl=self._tls,
            backlog=1024,
            ssl_handshake_timeout=self._limits.handshake_seconds if self._tls else None,
        )
        self._listeners.append(listener)
        for each in listener.sockets:
            enable_keepalive(each)

    async def stop(self, *, seconds: float = 5.0) -> None:
        """Stop accepting connections, end streams, wait for requests in flight, and close the rest."""
        if not self._listeners or self._server is None:
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        for listener in self._listeners:
            listener.close()
        self._server.end_streams()
        await self._server.receive_bodies(seconds)
        self._server.pre_shutdown()
        await self._server.shutdown(max(0.0, deadline - loop.time()))
        self._listeners = []


class _Connection(StreamingConnection):
    """One client's connection, and what TLS has verified about the client."""

    __slots__ = ("body_arrived", "peer", "source_ip")

    def __init__(self, server: _Server, **settings: Any) -> None:
        super().__init__(server, **settings)
        self.peer: Peer | None = None
        self.source_ip = ""
        # Set while a body is still arriving.
        self.body_arrived: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(self._manager, _Server)
        if self._manager.is_full:
            log.warning("refused a connection: there are %d already", len(self._manager.connections) - 1)
            self.drop()
            return
        self.peer = _peer_of(transport.get_extra_info("peercert"))
        self.source_ip = str((transport.get_extra_info("peername") or ("",))[0])
        if self.peer is None:
            self._manager.unauthenticated.add(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        if isinstance(self._manager, _Server):
            self._manager.unauthenticated.forget(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer unparsable requests as Go's server does; log and report internal errors."""
        is_ours = status != 400 and exc is not None
        if is_ours and not isinstance(exc, ConnectionError):
            log.error("%s %s failed", request.method, request.raw_path.partition("?")[0], exc_info=exc)
        if request.writer.output_size > 0:
            # The response has begun: only closing the connection shows the client that it is incomplete.
            raise ConnectionResetError("the response has already begun") from exc
        if is_ours:
            answer = status_of(ApiError(f"Internal error occurred: {exc}"))
        else:
            answer = web.Response(status=400, text="400 Bad Request", headers={hdrs.SERVER: SERVER_NAME})
        answer.force_close()
        return answer


class _Server(web.Server):
    """Accepts connections and translates requests and responses."""

    def __init__(self, handler: Handler, limits: HttpLimits, identify: Identify | None) -> None:
        super().__init__(self._serve)
        self._answer = handler
        self._identify = identify
        self._limits = limits
        self.unauthenticated = UnauthenticatedConnections(limits.unauthenticated_connections)
        self._settings: dict[str, Any] = {
            "stall_seconds": limits.stall_seconds,
            "most_head_bytes": limits.head_bytes,
            "first_head_seconds": limits.first_head_seconds,
            "access_log": None,
            "keepalive_timeout": limits.idle_seconds,
            "max_line_size": limits.header_bytes,
            "max_field_size": limits.header_bytes,
            "max_headers": limits.headers,
            "lingering_time": limits.lingering_seconds,
            # A body is not decompressed: a small one could become a huge one.
            "auto_decompress": False,
        }

    @property
    def is_full(self) -> bool:
        return len(self._connections) > self._limits.connections

    def __call__(self) -> _Connection:
        return _Connection(self, loop=self._loop, **self._settings)

    def end_streams(self) -> None:
        for connection in self.connections:
            assert isinstance(connection, _Connection)
            connection.end_stream()

    async def receive_bodies(self, seconds: float) -> None:
        """Close idle connections and wait for bodies that are arriving: a closing connection reads nothing more, so a
        request that has begun on it could not finish."""
        arriving: list[asyncio.Future[None]] = []
        for connection in self.connections:
            assert isinstance(connection, _Connection)
            if connection.body_arrived is not None:
                arriving.append(connection.body_arrived)
            else:
                connection.close()
        if arriving:
            await asyncio.wait(arriving, timeout=seconds)

    async def _receive(self, request: web.BaseRequest, connection: _Connection) -> bytes:
        if not request.can_read_body:
            return b""
        if self._identify is not None and not request.content.is_eof():
            # The rest of the body is only read, and kept, for an authenticated client.
            self._identify(_request(request, b"", connection))
        connection.body_arrived = arrived = self._loop.create_future()
        try:
            return await read_body(request, self._limits)
        finally:
            connection.body_arrived = None
            arrived.set_result(None)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection)
        connection.request_begins(request)
        try:
            return await self._served(request, connection)
        finally:
            connection.request_ends()

    async def _served(self, request: web.BaseRequest, connection: _Connection) -> web.StreamResponse:
        try:
            body = await self._receive(request, connection)
        except ApiError as error:
            answer = status_of(error)
            # The rest of the body is not read, so the connection cannot be reused.
            answer.force_close()
            return answer
        response = await self._answer(_request(request, body, connection))
        if (
            connection in self.unauthenticated
            and response.status != 401
            and hdrs.AUTHORIZATION in request.headers
        ):
            self.unauthenticated.forget(connection)
        if response.upgrade is not None:
            # Unread data is bounded, so a client may pause for any time.
            connection.may_stall = True
            if response.upgrade.protocols is None:
                return await _pass_on(request, headers_of(response), response.upgrade)
            return await _upgrade(request, response.upgrade, response.upgrade.protocols)
        content = response.body
        if isinstance(content, bytes):
            if len(content) <= SLICE_BYTES:
                return web.Response(status=response.status, body=content, headers=headers_of(response))
            content = [content]
        prepared = web.StreamResponse(status=response.status, headers=headers_of(response))
        if isinstance(content, AsyncIterator):
            await send_stream(request, prepared, connection, content)
        else:
            await send_pieces(request, prepared, connection, content)
        return prepared


def _request(request: web.BaseRequest, body: bytes, connection: _Connection) -> Request:
    path, _, raw_query = request.raw_path.partition("?")
    if not path.startswith("/"):
        # As sent by a proxy: the request line has the absolute URL.
        path, raw_query = request.rel_url.raw_path, request.rel_url.raw_query_string
    path = unquote(path) if "%" in path else path
    query = Query(raw_query)
    return Request(
        request.method,
        path,
        query,
        request.headers,
        body,
        connection.peer,
        connection.source_ip,
        connection.cancel_if_lost,
    )


def _peer_of(certificate: dict[str, Any] | None) -> Peer | None:
    """The subject of a certificate that the TLS layer has verified."""
    subject = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    names = [value for key, value in subject if key == "commonName"]
    if not names:
        return None
    return Peer(names[0], tuple(value for key, value in subject if key == "organizationName"))


async def _pass_on(
    request: web.BaseRequest, headers: CIMultiDict[str], wanted: Upgrade
) -> web.StreamResponse:
    """Upgrade to plain bytes. As below, the relay is always called."""
    for name in (hdrs.CONTENT_TYPE, hdrs.CACHE_CONTROL):
        headers.popall(name, None)
    try:
        channel = await UpgradedConnection.accept(request, headers.items())
    except BaseException:
        await wanted.relay(_ClosedChannel())
        raise
    await wanted.relay(channel)
    return channel.response


async def _upgrade(
    request: web.BaseRequest, wanted: Upgrade, protocols: tuple[str, ...]
) -> web.StreamResponse:
    """Upgrade to a WebSocket that speaks one of Kubernetes' subprotocols, or none if none was requested.

    The relay may hold a connection to a kubelet, and is responsible for closing it. So it is always called: with a
    closed channel if the client cannot be upgraded.
    """
    socket = web.WebSocketResponse(
        protocols=protocols,
        compress=False,
        max_msg_size=WEBSOCKET_MESSAGE_BYTES,
        heartbeat=_HEARTBEAT_SECONDS,
    )
    ready = socket.can_prepare(request)
    if not ready or (protocols and ready.protocol is None):
        await wanted.relay(_ClosedChannel())
        problem = "unable to upgrade: none of the requested protocols is supported"
        return status_of(
            ApiError(problem if ready else "Upgrade request required", code=400, reason="BadRequest")
        )
    await socket.prepare(request)
    try:
        await wanted.relay(_SocketChannel(socket, ready.protocol or ""))
    finally:
        await socket.close()
    return socket


class _SocketChannel(Channel):
    def __init__(self, socket: web.WebSocketResponse, protocol: str) -> None:
        self._socket = socket
        self.protocol = protocol

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is WSMsgType.TEXT:
            return str(message.data).encode()
        return None

    async def send(self, message: bytes | str) -> None:
        if isinstance(message, str):
            await self._socket.send_str(message)
        else:
            await self._socket.send_bytes(message)

    async def close(self) -> None:
        await self._socket.close()


class _ClosedChannel(Channel):
    protocol = ""

    async def receive(self) -> bytes | None:
        return None

    async def send(self, message: bytes | str) -> None:
        raise ConnectionResetError("the other side disconnected")

    async def close(self) -> None:
        return
