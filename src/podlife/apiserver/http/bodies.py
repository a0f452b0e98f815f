"""Request and response bodies: read within bounds, written at the reader's pace.

A list of any size is written in slices, so that memory stays flat and other requests get their turn. A stream is
flushed item by item and closed as soon as its reader is gone. A reader that stops reading is disconnected after
`stall_seconds`, since its unread data stays in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import hdrs, web
from aiohttp.http_writer import StreamWriter
from multidict import CIMultiDict

from podlife.api import status
from podlife.api.codec import encode
from podlife.bounded_connection import BoundedConnection
from podlife.errors import ApiError
from podlife.wire import Response

SERVER_NAME = "podlife"

SLICE_BYTES = 256 * 1024
SLICES_AHEAD = 4


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on what one client may use. The defaults follow kube-apiserver where it has such a limit."""

    body_bytes: int = 3 * 1024 * 1024
    # Of the request line, and of each header.
    header_bytes: int = 64 * 1024
    headers: int = 128
    # Of all headers together. Go's limit of 1 MB would cost 4 MB here before the client is authenticated: the parser
    # keeps each header as bytes and as text, and TLS buffers received data.
    head_bytes: int = 64 * 1024
    # Time a client may take to send the first request's headers.
    first_head_seconds: float = 30.0
    # A little longer than the 90 s after which clients close an idle connection: they should close first. Also the
    # time a client may take to send its next request's headers.
    idle_seconds: float = 120.0
    handshake_seconds: float = 10.0
    body_seconds: float = 30.0
    # Time to read and discard the rest of a rejected body, so that the client can read the rejection.
    lingering_seconds: float = 5.0
    # Time a reader may take for one slice of what is written to it.
    stall_seconds: float = 30.0
    connections: int = 16_384
    # Connections whose client is not authenticated yet.
    unauthenticated_connections: int = 1_024


class StreamingConnection(BoundedConnection):
    """A connection's reading side: it may stall, and it may be reading a stream when it closes."""

    __slots__ = ("_stall_check", "_stall_seconds", "_waiting", "is_ending", "may_stall", "stream")

    def __init__(self, server: web.Server, *, stall_seconds: float, **settings: Any) -> None:
        super().__init__(server, **settings)
        self.stream: asyncio.Task[Any] | None = None
        self._waiting: asyncio.Task[Any] | None = None
        # Distinguishes ending the stream from losing the client.
        self.is_ending = False
        self.may_stall = False
        self._stall_seconds = stall_seconds
        self._stall_check: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.may_stall:
            return
        assert self.transport is not None
        # At most a few slices are buffered. A reader that does not take them within this time has stalled.
        self._stall_check = self._loop.call_later(self._stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_check()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._forget_check()
        for task in filter(None, (self.stream, self._waiting)):
            task.cancel()

    @contextmanager
    def cancel_if_lost(self) -> Iterator[None]:
        """Cancel the current task if the client disconnects before it has a response."""
        self._waiting = task = asyncio.current_task()
        if task is not None and self._socket is None:
            task.cancel()
        try:
            yield
        finally:
            self._waiting = None

    def end_stream(self) -> None:
        """End the stream in an orderly way, as when a watch reaches its timeout."""
        self.is_ending = True
        if self.stream is not None:
            self.stream.cancel()

    def _forget_check(self) -> None:
        if self._stall_check is not None:
            self._stall_check.cancel()
            self._stall_check = None


def headers_of(response: Response) -> CIMultiDict[str]:
    headers = CIMultiDict(response.headers)
    headers[hdrs.CONTENT_TYPE] = response.content_type
    headers[hdrs.SERVER] = SERVER_NAME
    headers.setdefault(hdrs.CACHE_CONTROL, "no-cache, private")
    return headers


def status_of(error: ApiError) -> web.Response:
    response = Response(error.code, encode(status.failure(error)))
    return web.Response(status=error.code, body=response.body, headers=headers_of(response))


async def read_body(request: web.BaseRequest, limits: HttpLimits) -> bytes:
    """Read the whole body; raises ApiError if it is too large (413) or too slow (408)."""
    if (request.content_length or 0) > limits.body_bytes:
        raise _too_large(limits.body_bytes)
    content = request.content
    # A small body arrives together with its headers: nothing to wait for.
    if content.is_eof():
        body = content.read_nowait()
        if len(body) > limits.body_bytes:
            raise _too_large(limits.body_bytes)
        return body
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _read_parts(request, limits.body_bytes)
    except TimeoutError:
        raise ApiError("timed out reading the request body", code=408, reason="Timeout") from None
    except ConnectionError:
        # The client cannot read this; as an ApiError it is not logged as a server error.
        raise ApiError(
            "the client disconnected before sending the whole body", code=400, reason="BadRequest"
        ) from None


async def _read_parts(request: web.BaseRequest, limit: int) -> bytes:
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts: list[bytes] = []
    size = 0
    while part := await request.content.readany():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> ApiError:
    return ApiError(f"Request entity too large: limit is {limit}", code=413, reason="RequestEntityTooLarge")


async def send_pieces(
    request: web.BaseRequest, answer: web.StreamResponse, reader: StreamingConnection, pieces: Sequence[bytes]
) -> None:
    answer.content_length = sum(map(len, pieces))
    writer = await answer.prepare(request)
    assert isinstance(writer, StreamWriter)
    if request.method == hdrs.METH_HEAD or reader.transport is None:
        return
    # Stay a few slices ahead of the reader, so that writing and reading overlap.
    reader.transport.set_write_buffer_limits(high=SLICES_AHEAD * SLICE_BYTES)
    for part in slices(pieces):
        await _write(reader, writer, part)
        # Yield to other requests even if this reader is as fast as the writer.
        await asyncio.sleep(0)


async def send_stream(
    request: web.BaseRequest,
    answer: web.StreamResponse,
    reader: StreamingConnection,
    items: AsyncIterator[bytes],
) -> None:
    try:
        if request.version >= (1, 1):
            answer.enable_chunked_encoding()
        else:
            answer.force_close()
        writer = await answer.prepare(request)
        assert isinstance(writer, StreamWriter)
        is_wanted = request.method != hdrs.METH_HEAD and not reader.is_ending
        if is_wanted and reader.transport is not None:
            await _relay(reader, writer, items)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


async def _relay(reader: StreamingConnection, writer: StreamWriter, items: AsyncIterator[bytes]) -> None:
    task = asyncio.current_task()
    assert task is not None
    reader.stream = task
    # Confirm the watch at once, possibly long before the first event.
    writer.send_headers()
    try:
        async for item in items:
            if len(item) <= SLICE_BYTES:
                await _write(reader, writer, item)
            else:
                for part in slices([item]):
                    await _write(reader, writer, part)
    except asyncio.CancelledError:
        # Ending the stream from this side must not cancel the task that serves the connection.
        if not reader.is_ending or task.uncancel() > 0:
            raise
    finally:
        reader.stream = None


async def _write(reader: StreamingConnection, writer: StreamWriter, part: bytes) -> None:
    await writer.write(part, drain=False)
    if reader.writing_paused:
        await writer.drain()
        if reader.transport is None:
            raise ConnectionResetError("the reader disconnected")


def slices(pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Join the pieces and cut them into slices that are worth one system call each."""
    part: list[bytes] = []
    size = 0
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if size >= SLICE_BYTES:
            joined = b"".join(part) if len(part) > 1 else piece
            rest = size % SLICE_BYTES
            for start in range(0, size - rest, SLICE_BYTES):
                yield joined[start : start + SLICE_BYTES]
            part, size = [joined[size - rest :]], rest
    if size:
        yield b"".join(part)
