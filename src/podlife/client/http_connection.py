"""One HTTP/1.1 connection: one request and its response at a time.

Guarantees:
* At most one exchange is in flight.
* No more of a body is buffered than its reader has room for; the server is paused meanwhile.
* Every wait has a deadline, however slowly bytes arrive.
* A connection that received unexpected data is not reused, so stray bytes are never taken for a response.
* A connection that has ended is freed at once, with the hundreds of kilobytes of its TLS: it is in no reference cycle
  that would wait for the garbage collector, which runs rarely in a quiet process.

llhttp (httptools) parses the bytes. Pooling and the meaning of a response are left to `http_transport`.
"""

from __future__ import annotations

import asyncio
import select
import zlib
from typing import Any, cast

import httptools

from podlife.client.transport import NotSentError
from podlife.errors import UnreachableError

_MOST_HEADER_BYTES = 1 << 17
# Cost of a header besides its characters, to bound the number of tiny headers too.
_HEADER_OVERHEAD = 32
# Bytes decompressed at once: a small response may expand to any size.
_MOST_UNPACKED = 1 << 20


class CutOffError(UnreachableError):
    """The connection ended, or received invalid HTTP, before the response was complete."""


class HttpConnection(asyncio.Protocol):
    """`most_buffered`: bytes of a body to buffer before reading from the server pauses."""

    def __init__(self, most_buffered: int) -> None:
        self._most_buffered = most_buffered
        self._transport: asyncio.Transport | None = None
        # While connected: it refers to this object.
        self._parser: Any = None
        self._waiter: asyncio.Future[None] | None = None
        # Not as an exception: its traceback would refer to this object.
        self._failure = ""
        self._is_paused = False
        self._ended_with = _words(None)
        # From sending a request until its response is complete; data at other times is an error.
        self._is_awaited = False
        # A response to HEAD has no body, whatever its headers say.
        self._is_head_only = False
        # Bytes received since the last ones that were useful to the reader.
        self._useless_bytes = 0
        self._poll: select.poll | None = None
        self.is_open = False
        self.idle_since = 0.0
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._header_bytes = 0
        self._has_head = False
        self._is_complete = False
        self._is_kept = False
        self._ends_with_connection = False
        self._pieces: list[bytes] = []
        self._buffered = 0
        self._unpacker: Any = None
        self._has_unpacked = False
        self._has_more_to_unpack = False

    # For the transport

    @property
    def is_reusable(self) -> bool:
        """Whether the last exchange has ended cleanly, so that another may begin."""
        return (
            self.is_open
            and self._is_complete
            and self._is_kept
            and not self._pieces
            # A server may respond before it has read the whole request, and never read the rest.
            and self._transport is not None
            and self._transport.get_write_buffer_size() == 0
        )

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was received since, not even an end that the loop has not reported yet: otherwise a request
        sent now would be lost, and it would be unknown whether it was executed."""
        return self._poll is None or not self._poll.poll(0)

    async def exchange(self, message: bytes, *, seconds: float | None) -> None:
        """Send the request and wait for the response headers. Raises TimeoutError, CutOffError if the connection ends
        first, and NotSentError if it had ended before."""
        if self._is_awaited:
            raise RuntimeError("another request is in flight on this connection")
        if self._transport is None or not self.is_open:
            raise NotSentError(self._ended_with)
        self._reset()
        self._is_awaited = True
        self._is_head_only = message.startswith(b"HEAD ")
        self._useless_bytes = 0
        self._transport.write(message)
        deadline = _deadline(seconds)
        while not self._has_head:
            self._raise_failure()
            await self._wait(deadline)

    async def read(self, *, seconds: float | None) -> bytes:
        """The received part of the body; empty at its end. Raises TimeoutError after `seconds` without data, and
        CutOffError."""
        deadline = None if self._pieces or self._is_complete else _deadline(seconds)
        while True:
            if self._has_more_to_unpack:
                # Yield: a small response may decompress to a large one.
                await asyncio.sleep(0)
            if self._pieces:
                # The first bytes of a compressed body may yield no data.
                if piece := self._take():
                    return piece
                continue
            if self._is_complete:
                if self._has_unpacked and not self._unpacker.eof:
                    raise CutOffError("the compressed response is incomplete")
                return b""
            self._raise_failure()
            deadline = _deadline(seconds) if deadline is None else deadline
            await self._wait(deadline)

    def abort(self) -> None:
        """Close the connection without the TLS closing handshake, which would wait for the peer."""
        self.is_open = False
        if not self._is_complete:
            # A response without a length ends with the connection, but not if this side closes it.
            self._failure = self._failure or "the connection was aborted"
        if self._transport is not None:
            self._transport.abort()

    # Callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpResponseParser(self)
        # Data or an end may have arrived through a proxy's tunnel before this callback.
        self.is_open = not self._failure
        if (connected := transport.get_extra_info("socket")) is not None:
            self._poll = select.poll()
            self._poll.register(connected.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if self._failure:
            return
        if not self._is_awaited:
            self._fail("unexpected data on an idle connection")
            return
        self._useless_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"invalid HTTP response: {error.__context__ or error}")
            return
        if self._useless_bytes > _MOST_HEADER_BYTES:
            self._fail("invalid HTTP response: too much data without content")
            return
        if self._buffered > self._most_buffered and not self._is_paused and self._transport is not None:
            self._transport.pause_reading()
            self._is_paused = True
        self._wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: BaseException | None) -> None:
        self.is_open = False
        self._ended_with = _words(error)
        self._transport = self._parser = None
        if not self._is_complete:
            if self._has_head and self._ends_with_connection and error is None and not self._failure:
                self._is_complete = True
            else:
                self._failure = self._failure or self._ended_with
        self._wake()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if not self._is_awaited:
            # Reading it as the next response, or as more of this one, would be response splitting.
            raise ValueError("a second response to one request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value) + _HEADER_OVERHEAD
        if self._header_bytes > _MOST_HEADER_BYTES:
            raise ValueError("the response headers are too long")
        if self._has_head:
            # Trailers are ignored.
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        headers = self.headers
        if self.status < 200:
            return
        self._has_head = True
        self._useless_bytes = 0
        self._ends_with_connection = "content-length" not in headers and "transfer-encoding" not in headers
        if "content-encoding" in headers:
            self._unpacker = _unpacker(headers["content-encoding"])
        if self._is_head_only:
            # The parser now expects a body and cannot be reset, so the connection is not reused.
            self._is_complete = True
            self._is_awaited = False

    def on_body(self, piece: bytes) -> None:
        if not self._is_awaited or not self._has_head:
            raise ValueError("unexpected response body")
        self._useless_bytes = 0
        self._pieces.append(piece)
        self._buffered += len(piece)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_complete = True
            self._is_awaited = False
            # Only available in this callback.
            self._is_kept = self._parser.should_keep_alive()
        else:
            # An interim response (100, 103).
            self._reset()

    # Internals

    def _take(self) -> bytes:
        pieces, self._pieces, self._buffered = self._pieces, [], 0
        if self._is_paused and self._transport is not None and self.is_open:
            self._is_paused = False
            self._transport.resume_reading()
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return data if self._unpacker is None else self._unpack(data)

    def _unpack(self, data: bytes) -> bytes:
        try:
            unpacked: bytes = self._unpacker.decompress(data, _MOST_UNPACKED)
        except zlib.error as error:
            raise self._not_unpacked(str(error)) from None
        if self._unpacker.unused_data:
            raise self._not_unpacked("data after its end")
        self._has_unpacked = True
        rest = self._unpacker.unconsumed_tail
        self._has_more_to_unpack = bool(rest)
        if rest:
            self._pieces.insert(0, rest)
            self._buffered += len(rest)
        return unpacked

    def _not_unpacked(self, why: str) -> CutOffError:
        self._fail(f"the response cannot be decompressed: {why}")
        return CutOffError(self._failure)

    async def _wait(self, deadline: float | None) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        # Own timer: `asyncio.timeout` would double the cost of a request.
        timer = None if deadline is None else loop.call_at(deadline, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, why: str) -> None:
        self._failure = self._failure or why
        self.abort()
        self._wake()

    def _raise_failure(self) -> None:
        if self._failure:
            raise CutOffError(self._failure)


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else asyncio.get_running_loop().time() + max(0.0, seconds)


def _unpacker(encoding: str) -> Any:
    encoding = encoding.strip().lower()
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    if encoding not in ("", "identity"):
        raise ValueError(f"unsupported content encoding {encoding[:20]!r}")
    return None


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


def _words(error: BaseException | None) -> str:
    return (
        (" ".join(str(error).split()) or type(error).__name__) if error is not None else "connection closed"
    )
