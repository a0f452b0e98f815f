"""Limits the server's connections: their number, and how long one may stay open without a request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from podlife.aio import wait_until_set
from podlife.bounded_connection import BoundedConnection

log = logging.getLogger(__name__)

_FIRST_REQUEST_SECONDS = 30.0
# Keepalive timeout; slightly longer than that of clients.
_NEXT_REQUEST_SECONDS = 100.0
# Size limit of the request line and of each header, and of all together.
_HEADER_BYTES = 16 * 1024
_HEAD_BYTES = 64 * 1024


class _Connection(BoundedConnection):
    __slots__ = ("_transport",)

    def __init__(self, server: BoundedServer, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(self._manager, BoundedServer)
        self._transport = transport
        self._manager.opened(transport)
        if self._manager.is_full:
            log.warning("connection refused: %d are open already", len(self._manager.connections) - 1)
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        if isinstance(self._manager, BoundedServer) and self._transport is not None:
            self._manager.closed(self._transport)
        super().connection_lost(exc)


class BoundedServer(web.Server):
    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], most_connections: int
    ) -> None:
        # Cancel the handler when the caller disconnects, so that no log is read and no command runs on.
        super().__init__(self._handle, handler_cancellation=True)
        self._handler = handler
        self._most = most_connections
        self._transports: set[asyncio.BaseTransport] = set()
        self._none_open = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return len(self._connections) > self._most

    def opened(self, transport: asyncio.BaseTransport) -> None:
        self._transports.add(transport)
        self._none_open.clear()

    def closed(self, transport: asyncio.BaseTransport) -> None:
        self._transports.discard(transport)
        if not self._transports:
            self._none_open.set()

    async def stop(self, seconds: float) -> None:
        """End requests in progress and close all connections; those that the client does not close are aborted."""
        self.pre_shutdown()
        await self.shutdown(seconds)
        if not self._transports or await wait_until_set(self._none_open, seconds=seconds):
            return
        for transport in self._transports:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
        await wait_until_set(self._none_open, seconds=seconds)

    def __call__(self) -> web.RequestHandler:
        return _Connection(
            self,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=_NEXT_REQUEST_SECONDS,
            lingering_time=1.0,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
            most_head_bytes=_HEAD_BYTES,
            first_head_seconds=_FIRST_REQUEST_SECONDS,
        )

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, _Connection)
        connection.request_begins(request)
        try:
            return await self._handler(request)
        finally:
            connection.request_ends()
