"""The connections of the endpoint: so many at most, and none that is held open without a request."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

__all__ = ["BoundedServer", "notice_dead_callers"]

log = logging.getLogger(__name__)

_FIRST_REQUEST_SECONDS = 30.0
_HEADER_BYTES = 16 * 1024


def notice_dead_callers(listener: socket.socket) -> None:
    """A caller that vanished without a word is found within two minutes; what is accepted inherits this."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


class _Connection(web.RequestHandler):
    __slots__ = ("_first_request",)

    def __init__(self, server: BoundedServer, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._first_request: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(self._manager, BoundedServer)
        if self._manager.is_full:
            log.warning("refused a connection: there are %d already", len(self._manager.connections) - 1)
            self.force_close()
            return
        self._first_request = self._loop.call_later(_FIRST_REQUEST_SECONDS, self.force_close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.request_came()
        super().connection_lost(exc)

    def request_came(self) -> None:
        if self._first_request is not None:
            self._first_request.cancel()
            self._first_request = None


class BoundedServer(web.Server):
    def __init__(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], most_connections: int
    ) -> None:
        # A caller that has gone takes its request along: a log is not read, a command not run, for nobody.
        super().__init__(self._noticed, handler_cancellation=True)
        self._answer = answer
        self._most = most_connections

    @property
    def is_full(self) -> bool:
        return len(self._connections) > self._most

    def __call__(self) -> web.RequestHandler:
        return _Connection(
            self,
            loop=self._loop,
            access_log=None,
            lingering_time=1.0,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def _noticed(self, request: web.BaseRequest) -> web.StreamResponse:
        if isinstance(request.protocol, _Connection):
            request.protocol.request_came()
        return await self._answer(request)
