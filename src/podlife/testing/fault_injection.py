"""A way to the API server that can be made as bad as a test needs: stalled, cut, its watches broken, answers lost.

    way.stall(); await cluster.advance(seconds=30); way.go_on()

Everything a component asks goes through a way of its own, and then through the one that all share. What comes over a
broken way looks as it does over a network: no answer, a refused connection, a stream that ends within.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from podlife.client.transport import NotSentError
from podlife.errors import UnreachableError
from podlife.wire import Handler, Request, Response

__all__ = ["Disturbance", "Way"]

Disturbance = Callable[[Request, Handler], Awaitable[Response]]
"""Stands in the way of a request: passes it on, late or not at all, or answers instead."""


class Way:
    """`disturb` may be set to anything that answers in the server's place. `loses_answers`: requests are carried out,
    and nobody hears of it."""

    def __init__(self, name: str, onwards: Handler) -> None:
        self.name = name
        self.disturb: Disturbance | None = None
        self.loses_answers = False
        self._onwards = onwards
        self._is_cut = False
        self._moving = asyncio.Event()
        self._moving.set()
        # The reads of streams that are under way, in the order in which they began.
        self._reads: dict[asyncio.Timeout, None] = {}
        self._breaks = 0

    @property
    def is_cut(self) -> bool:
        return self._is_cut

    @property
    def is_stalled(self) -> bool:
        return not self._moving.is_set()

    def stall(self) -> None:
        """Nothing moves any more, in either direction, and nothing says so."""
        self._moving.clear()

    def go_on(self) -> None:
        self._moving.set()

    def cut(self) -> None:
        """Connections break, and new ones are refused."""
        self._is_cut = True
        self.break_watches()

    def mend(self) -> None:
        self._is_cut = False

    def break_watches(self) -> None:
        """Streams end within, and can be begun again."""
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
            raise UnreachableError(f"the connection of {self.name} broke before the answer came")
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
        """Raises TimeoutError when streams are broken meanwhile."""
        async with asyncio.timeout(None) as read:
            self._reads[read] = None
            try:
                piece = await anext(body, b"")
                await self._moving.wait()
                return piece
            finally:
                del self._reads[read]
