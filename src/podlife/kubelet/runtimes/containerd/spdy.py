"""A SPDY/3.1 connection to the streaming server of a CRI daemon: upgraded from HTTP, with streams in it.

The client opens the streams, each with a header that names its type; each direction of a stream ends separately. It
is not WebSocket, because CRI's WebSocket servers do not support the end of the input. Streaming servers have no flow
control, so an unread stream blocks the whole connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from podlife.kubelet.spdy import (
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    SpdyError,
    StreamData,
    StreamReset,
)

_CHUNK_BYTES = 32 * 1024
# Streaming servers send smaller frames: they copy through buffers of 32 KiB.
_MAX_FRAME_BYTES = 1024 * 1024
_MAX_RESPONSE_BYTES = 64 * 1024
_CONNECT_SECONDS = 30.0

Receive = Callable[[bytes], None]


class SpdyConnection:
    """Created by `upgraded`. `pump` reads until all streams have ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameWriter()
        self._next_id = 1
        self._streams: dict[int, tuple[Receive, Callable[[], None]]] = {}

    def open_stream(self, kind: str, receive: Receive, ended: Callable[[], None], **headers: str) -> int:
        """Open a stream of this type; its data goes to `receive`, and `ended` is called once when it ends."""
        stream_id = self._next_id
        self._next_id += 2
        self._streams[stream_id] = (receive, ended)
        self._writer.write(self._frames.open(stream_id, {"streamtype": kind, **headers}))
        return stream_id

    async def send(self, stream_id: int, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK_BYTES):
            self.post(stream_id, data[start : start + _CHUNK_BYTES])
            await self._writer.drain()

    def post(self, stream_id: int, data: bytes, *, is_last: bool = False) -> None:
        """Send a few bytes without waiting."""
        if not self._writer.is_closing():
            self._writer.write(self._frames.data(stream_id, data, is_last=is_last))

    async def finish(self, stream_id: int) -> None:
        """End this direction of the stream."""
        self.post(stream_id, b"", is_last=True)
        await self._writer.drain()

    async def pump(self, may_go_on: asyncio.Event) -> None:
        """Process the server's frames while `may_go_on` is set. On return, even by an error, every stream has ended."""
        reader = FrameReader(max_data_bytes=_MAX_FRAME_BYTES)
        try:
            while self._streams and (data := await self._read()):
                for frame in reader.feed(data):
                    self._take(frame)
                    if not self._streams or isinstance(frame, GoAway):
                        return
                    await may_go_on.wait()
        finally:
            for stream_id in list(self._streams):
                self._end(stream_id)

    async def _read(self) -> bytes:
        """Empty if the server closed the connection."""
        try:
            return await self._reader.read(_CHUNK_BYTES)
        except ConnectionError:
            return b""

    def _take(self, frame: Frame) -> None:
        match frame:
            case StreamData() if frame.stream_id in self._streams:
                if frame.data:
                    self._streams[frame.stream_id][0](frame.data)
                if frame.is_last:
                    self._end(frame.stream_id)
            case StreamReset():
                self._end(frame.stream_id)
            case Ping() if frame.number % 2 == 0:
                # Even numbers are the server's own pings; odd ones are replies.
                self._writer.write(self._frames.ping(frame.number))

    def _end(self, stream_id: int) -> None:
        if (stream := self._streams.pop(stream_id, None)) is not None:
            stream[1]()


@asynccontextmanager
async def upgraded(url: str, protocol: str) -> AsyncIterator[SpdyConnection]:
    """Connect and upgrade to SPDY with the given subprotocol. Raises SpdyError or OSError."""
    target = urlsplit(url)
    if target.scheme != "http" or target.hostname is None:
        raise SpdyError(
            f"invalid streaming address {url!r}: expected http; turn off TLS of the daemon's streaming server"
        )
    async with asyncio.timeout(_CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(
            target.hostname, target.port or 80, limit=_MAX_RESPONSE_BYTES
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
        response = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise SpdyError("the server does not answer as HTTP does") from None
    status = response.split("\r\n", 1)[0]
    if " 101 " not in status:
        raise SpdyError(f"the server refuses: {status}")
