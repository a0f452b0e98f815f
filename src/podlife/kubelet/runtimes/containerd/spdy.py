"""As much of SPDY/3.1 as a streaming server of CRI wants of its client: an upgraded connection with streams in it.

Streams are opened from here, each with one header that says what it is for; data goes both ways and ends per direction.
WebSocket would need less, but in no version of CRI's servers can a WebSocket say that the input has ended. There is no
flow control: those servers have none, so whoever does not read lets the whole connection wait.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

__all__ = ["SpdyConnection", "SpdyError", "upgraded"]

_VERSION = 0x8003
_SYN_STREAM, _RST_STREAM, _PING, _GOAWAY = 1, 3, 6, 7
_FIN = 0x01
_HEADER_BYTES = 8
_CHUNK_BYTES = 32 * 1024
# No frame of such a server is longer: it copies through buffers of 32 KiB.
_MOST_FRAME_BYTES = 1024 * 1024
_MOST_ANSWER_BYTES = 64 * 1024
_CONNECT_SECONDS = 30.0

Receive = Callable[[bytes], None]


class SpdyError(Exception):
    """The server does not want this connection, or sends what is no SPDY."""


class SpdyConnection:
    """Made by `upgraded`. `pump` reads until the server has nothing more to say."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._deflate = zlib.compressobj()
        self._next_id = 1
        self._streams: dict[int, tuple[Receive, Callable[[], None]]] = {}

    def open_stream(self, kind: str, receive: Receive, ended: Callable[[], None]) -> int:
        """A stream for what `kind` says; what comes on it is given to `receive`, its end told once to `ended`."""
        stream_id = self._next_id
        self._next_id += 2
        self._streams[stream_id] = (receive, ended)
        headers = _pairs({"streamtype": kind})
        # One compression for all headers of a connection, each flushed; the usual dictionary may be left out.
        block = self._deflate.compress(headers) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._control(_SYN_STREAM, struct.pack(">IIBB", stream_id, 0, 0, 0) + block)
        return stream_id

    async def send(self, stream_id: int, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK_BYTES):
            self._data(stream_id, data[start : start + _CHUNK_BYTES], 0)
            await self._writer.drain()

    def post(self, stream_id: int, data: bytes) -> None:
        """A few bytes, without waiting."""
        self._data(stream_id, data, 0)

    async def finish(self, stream_id: int) -> None:
        """Nothing more comes from here on this stream."""
        self._data(stream_id, b"", _FIN)
        await self._writer.drain()

    async def pump(self, may_go_on: Callable[[], asyncio.Event]) -> None:
        """Take what the server sends, while `may_go_on` is set. Every stream is told its end, however this ends."""
        try:
            while self._streams and await self._take_frame():
                await may_go_on().wait()
        finally:
            for stream_id in list(self._streams):
                self._end(stream_id)

    async def _take_frame(self) -> bool:
        """Whether there may be more."""
        try:
            first, second = struct.unpack(">II", await self._reader.readexactly(_HEADER_BYTES))
            flags, length = second >> 24, second & 0xFFFFFF
            if length > _MOST_FRAME_BYTES:
                raise SpdyError(f"the server sends a frame of {length} bytes")
            body = await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        if first & 0x80000000:
            return self._take_control(first & 0xFFFF, body)
        if first in self._streams:
            if body:
                self._streams[first][0](body)
            if flags & _FIN:
                self._end(first)
        return True

    def _take_control(self, kind: int, body: bytes) -> bool:
        if kind == _PING and len(body) == 4 and struct.unpack(">I", body)[0] % 2 == 0:
            self._control(_PING, body)
        elif kind == _RST_STREAM and len(body) == 8:
            self._end(struct.unpack(">II", body)[0])
        # The replies to our streams say nothing that is needed; their headers are not even looked at.
        return kind != _GOAWAY

    def _end(self, stream_id: int) -> None:
        if (stream := self._streams.pop(stream_id, None)) is not None:
            stream[1]()

    def _control(self, kind: int, body: bytes) -> None:
        self._writer.write(struct.pack(">HHI", _VERSION, kind, len(body)) + body)

    def _data(self, stream_id: int, data: bytes, flags: int) -> None:
        if not self._writer.is_closing():
            self._writer.write(struct.pack(">II", stream_id, flags << 24 | len(data)) + data)


@asynccontextmanager
async def upgraded(url: str, protocol: str) -> AsyncIterator[SpdyConnection]:
    """Connect and change to SPDY, with the subprotocol that is asked for. Raises SpdyError or OSError."""
    target = urlsplit(url)
    if target.scheme != "http" or target.hostname is None:
        raise SpdyError(
            f"the address {url!r} is no plain http: turn off TLS of the daemon's streaming server"
        )
    async with asyncio.timeout(_CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(
            target.hostname, target.port or 80, limit=_MOST_ANSWER_BYTES
        )
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await _upgrade(reader, writer, target.netloc, target.path, protocol)
        yield SpdyConnection(reader, writer)
    finally:
        writer.transport.abort()


async def _upgrade(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, path: str, protocol: str
) -> None:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        f"X-Stream-Protocol-Version: {protocol}",
        "Content-Length: 0",
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise SpdyError("the server does not answer as HTTP does") from None
    status = answer.split("\r\n", 1)[0]
    if " 101 " not in status:
        raise SpdyError(f"the server refuses: {status}")


def _pairs(headers: dict[str, str]) -> bytes:
    made = struct.pack(">I", len(headers))
    for name, value in headers.items():
        for text in (name.encode(), value.encode()):
            made += struct.pack(">I", len(text)) + text
    return made
