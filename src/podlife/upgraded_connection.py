"""A server's connection after an upgrade from HTTP: bytes in both directions, bounded in memory.

Unread bytes are bounded: beyond the limit, reading from the connection pauses. `send` waits while the client does not
read. What the bytes mean (SPDY, a WebSocket that is passed on) is left to the user of the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Self

from aiohttp import web

_UNREAD_BYTES = 256 * 1024
# With TLS, half a megabyte would wait for a client that does not read.
_UNSENT_BYTES = 64 * 1024


def limit_unsent(request: web.BaseRequest) -> None:
    """Bound what waits for a client that may pause for any time, of which there can be many."""
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=_UNSENT_BYTES)


class _UpgradeResponse(web.StreamResponse):
    """A response that upgrades the connection: it has no length to send or check."""

    _length_check = False


class UpgradedConnection:
    """Created by `accept`. Has the methods of `wire.Channel`."""

    protocol = ""

    def __init__(self, request: web.BaseRequest, headers: Iterable[tuple[str, str]]) -> None:
        self.response: web.StreamResponse = _UpgradeResponse(status=101)
        for name, value in headers:
            self.response.headers.add(name, value)
        self._request = request
        self._unread = bytearray()
        self._is_paused = False
        self._is_closed = False
        self._changed = asyncio.Event()

    @classmethod
    async def accept(cls, request: web.BaseRequest, headers: Iterable[tuple[str, str]]) -> Self:
        """Send 101 with these headers; from here on the data is not HTTP."""
        made = cls(request, headers)
        limit_unsent(request)
        # As aiohttp does for a WebSocket.
        request.protocol.set_parser(made)  # type: ignore[arg-type] # only feed_data and feed_eof are called
        await made.response.prepare(request)
        made.response.force_close()
        return made

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Called by the connection. Returns whether to close it, and unused data, which is always empty."""
        self._unread += data
        self._throttle()
        self._changed.set()
        return self._is_closed, b""

    def feed_eof(self) -> None:
        self._is_closed = True
        self._changed.set()

    async def receive(self) -> bytes | None:
        """What has arrived; None when the client has disconnected."""
        while not self._unread:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        data = bytes(self._unread)
        self._unread.clear()
        self._throttle()
        return data

    async def send(self, message: bytes | str) -> None:
        """Raises ConnectionError if the client has disconnected."""
        if self._is_closed:
            raise ConnectionResetError("the client has disconnected")
        await self.response.write(message.encode() if isinstance(message, str) else message)

    async def close(self) -> None:
        """End the connection after everything sent."""
        if not self._is_closed:
            self._is_closed = True
            self._changed.set()
            if (transport := self._request.transport) is not None:
                transport.close()

    def _throttle(self) -> None:
        is_too_much = len(self._unread) > _UNREAD_BYTES
        transport = self._request.transport
        if is_too_much == self._is_paused or transport is None or transport.is_closing():
            return
        self._is_paused = is_too_much
        (transport.pause_reading if is_too_much else transport.resume_reading)()
