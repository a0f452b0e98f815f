"""Faults on the connection to the API server: stalled, cut, watches broken, responses lost.

    faults.stall(); await cluster.advance(seconds=30); faults.resume()

Each component has its own, and all share another behind it. Faults look as they do on a network: no response, a
refused connection, a stream that ends in the middle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from podlife.client.transport import NotSentError
from podlife.errors import UnreachableError
from podlife.wire import Handler, Request, Response

Disturbance = Callable[[Request, Handler], Awaitable[Response]]
"""Handles a request instead of the server: forwards it, late or not at all, or responds itself."""


class FaultInjection:
    """`disturb` handles requests instead of the server. With `loses_answers` requests are executed and their
    responses lost."""

    def __init__(self, name: str, onwards: Handler) -> None:
        self.name = name
        self.disturb: Disturbance | None = None
        self.loses_answers = False
        self._onwards = onwards
        self._is_cut = False
        self._moving = asyncio.Event()
        self._moving.set()
        # Pending reads of streams, oldest first.
        self._reads: dict[asyncio.Timeout, None] = {}
        self._breaks = 0

    def stall(self) -> None:
        """Nothing is transferred in either direction, and no error is raised."""
        self._moving.clear()

    def resume(self) -> None:
        self._moving.set()

    def cut(self) -> None:
        """Break connections and refuse new ones."""
        self._is_cut = True
        self.break_watches()

    def restore(self) -> None:
        self._is_cut = False

    def break_watches(self) -> None:
        """End streams in the middle; they can be restarted."""
        self._breaks += 1
        now = asyncio.get_running_loop().time()
        for read in self._reads:
            if not read.expired():
                read.reschedule(now)

    async def __call__(self, request: Request) -> Response:
        if self._is_cut:
            raise NotSentError(f"the connection of {self.name} was refused")
        await self._moving.wait()
        if self.disturb is None:
            response = await self._onwards(request)
        else:
            response = await self.disturb(request, self._onwards)
        await self._moving.wait()
        if self._is_broken():
            raise UnreachableError(f"the connection of {self.name} broke before the response")
        if isinstance(response.body, AsyncIterator):
            response.body = self._stream(response.body)
        return response

    def _is_broken(self) -> bool:
        return self._is_cut or self.loses_answers

    async def _stream(self, body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        assert isinstance(body, AsyncGenerator)
        breaks = self._breaks
        async with aclosing(body):
            while True:
                try:
                    if self._breaks != breaks:
                        raise TimeoutError
                    piece = await self._read(body)
                except TimeoutError:
                    raise ConnectionResetError("the connection was broken") from None
                if not piece:
                    return
                yield piece

    async def _read(self, body: AsyncGenerator[bytes, None]) -> bytes:
        """Raises TimeoutError if streams are broken meanwhile."""
        async with asyncio.timeout(None) as read:
            self._reads[read] = None
            try:
                piece = await anext(body, b"")
                await self._moving.wait()
                return piece
            finally:
                del self._reads[read]
