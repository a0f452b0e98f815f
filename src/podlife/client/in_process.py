"""Transport without a socket: requests go to an API server's handler in the same process.

Everything above it behaves as over HTTP. A stream that its reader closes, or that is silent for too long, is closed
on the server's side as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from podlife.client.transport import DeadlineError, NotSentError, SilenceError
from podlife.errors import UnreachableError
from podlife.wire import Body, Handler, Peer, Request


class InProcessTransport:
    """`headers` and `peer` replace the authentication of a connection: a bearer token, a client certificate."""

    def __init__(
        self, handler: Handler, *, headers: Mapping[str, str] | None = None, peer: Peer | None = None
    ) -> None:
        self._handler = handler
        self._headers = dict(headers or {})
        self._peer = peer
        self._is_closed = False

    async def prepare(self) -> None:
        """No login is needed."""

    async def send(
        self, request: Request, *, seconds: float | None, is_stream: bool = False
    ) -> InProcessResponse:
        if self._is_closed:
            raise NotSentError("the transport is closed", is_lasting=True)
        headers = {**self._headers, **request.headers}
        sent = Request(request.method, request.path, request.query, headers, request.body, self._peer)
        try:
            async with asyncio.timeout(seconds):
                response = await self._handler(sent)
        except TimeoutError:
            raise DeadlineError(f"no answer to {request.method} {request.path}") from None
        pairs = response.headers.items() if isinstance(response.headers, Mapping) else response.headers
        answered: dict[str, str] = {}
        for name, value in pairs:
            known = answered.get(name.lower())
            answered[name.lower()] = value if known is None else f"{known}, {value}"
        answered.setdefault("content-type", response.content_type)
        return InProcessResponse(response.status, answered, response.body)

    async def close(self) -> None:
        self._is_closed = True


class InProcessResponse:
    def __init__(self, status: int, headers: Mapping[str, str], body: Body) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        self._pieces = body if isinstance(body, AsyncIterator) else _in_pieces(body)

    async def next_piece(self, *, seconds: float | None) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                async for piece in self._pieces:
                    if piece:
                        return piece
        except TimeoutError:
            raise SilenceError(f"the server was silent for {seconds:g} s") from None
        except OSError as error:
            raise UnreachableError(f"the response was cut off: {error}") from None
        return b""

    async def close(self) -> None:
        close = getattr(self._pieces, "aclose", None)
        if close is not None:
            await close()


async def _in_pieces(body: bytes | Sequence[bytes]) -> AsyncIterator[bytes]:
    for piece in (body,) if isinstance(body, bytes) else body:
        yield piece
