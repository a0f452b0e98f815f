"""Commands over SPDY/3.1, which a kube-apiserver uses for nodes that do not declare WebSockets, and older ones always.

The caller opens one stream each for error, stdin, stdout, stderr and resize, as requested; then the command starts.
Unread input is bounded: nothing is read from the connection while the command does not take its input.
"""

from __future__ import annotations

import asyncio
from collections import deque

from aiohttp import web

from podlife.kubelet.server.request import HttpError, ServedNode
from podlife.kubelet.spdy import (
    Frame,
    FrameReader,
    FrameWriter,
    Ping,
    SpdyError,
    StreamData,
    StreamOpened,
    StreamReset,
)
from podlife.upgraded_connection import UpgradedConnection

from .remote_command import ERROR, RESIZE, STDERR, STDIN, STDOUT, ExecOptions, RemoteCommand, StreamMessage

_PROTOCOL = "v4.channel.k8s.io"
_KINDS = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_OPEN_SECONDS = 30.0
_CLOSE_SECONDS = 2.0


async def accept_spdy(request: web.BaseRequest, protocol: str) -> UpgradedConnection:
    """Raises HttpError if the caller does not speak the protocol."""
    header = "X-Stream-Protocol-Version"
    wanted = [part.strip() for line in request.headers.getall(header, []) for part in line.split(",")]
    if protocol not in wanted:
        raise HttpError(403, f"unable to upgrade: only {protocol} is known, not [{' '.join(wanted)}]")
    headers = (("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), (header, protocol))
    return await UpgradedConnection.accept(request, headers)


async def serve_spdy(
    node: ServedNode, request: web.BaseRequest, command: RemoteCommand
) -> web.StreamResponse:
    connection = await accept_spdy(request, _PROTOCOL)
    streams = SpdyStreams(connection)
    await streams.opened(_expected(command.options))
    await command.run(streams, idle_seconds=node.stream_idle_seconds)
    await streams.end()
    return connection.response


def _expected(options: ExecOptions) -> set[int]:
    requested = {STDIN: options.stdin, STDOUT: options.stdout, STDERR: options.stderr, RESIZE: options.tty}
    return {ERROR, *(kind for kind, is_requested in requested.items() if is_requested)}


class SpdyStreams:
    """The streams of one connection."""

    def __init__(self, connection: UpgradedConnection) -> None:
        self._connection = connection
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._ids: dict[int, int] = {}
        self._kinds: dict[int, int] = {}
        self._received: deque[StreamMessage] = deque()

    async def opened(self, kinds: set[int]) -> None:
        """Wait until the caller has opened these streams. Raises ConnectionError if it does not."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                while not kinds <= self._ids.keys():
                    if not await self._read():
                        raise ConnectionResetError("the caller has gone")
        except TimeoutError:
            raise ConnectionResetError("the caller has not opened its streams in time") from None

    async def receive(self) -> StreamMessage | None:
        while not self._received:
            if not await self._read():
                return None
        return self._received.popleft()

    async def send(self, stream: int, data: bytes) -> None:
        if (stream_id := self._ids.get(stream)) in self._kinds and stream_id is not None:
            await self._connection.send(self._writer.data(stream_id, data))

    async def end(self) -> None:
        """Close every stream and send GOAWAY. The caller closes the connection, within `_CLOSE_SECONDS`."""
        for kind in (STDOUT, STDERR, STDIN, RESIZE, ERROR):
            stream_id = self._ids.get(kind)
            if stream_id in self._kinds:
                await self._connection.send(self._writer.data(stream_id, b"", is_last=True))
        await self._connection.send(self._writer.go_away(max(self._ids.values(), default=0)))
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                while await self._connection.receive() is not None:
                    pass
        except TimeoutError:
            return

    async def _read(self) -> bool:
        """Handle what has arrived; False if the caller has gone, or is not understood."""
        data = await self._connection.receive()
        if data is None:
            return False
        try:
            for frame in self._reader.feed(data):
                await self._handle(frame)
        except SpdyError:
            await self._connection.close()
            return False
        return True

    async def _handle(self, frame: Frame) -> None:
        match frame:
            case StreamOpened():
                await self._open(frame)
            case StreamData() if frame.stream_id in self._kinds:
                kind = self._kinds[frame.stream_id]
                if frame.data:
                    self._enqueue(StreamMessage(kind, frame.data))
                if frame.is_last:
                    self._enqueue(StreamMessage(kind, None))
            case StreamReset() if frame.stream_id in self._kinds:
                self._enqueue(StreamMessage(self._kinds.pop(frame.stream_id), None))
            case Ping():
                await self._connection.send(self._writer.ping(frame.number))

    async def _open(self, frame: StreamOpened) -> None:
        kind = _KINDS.get(frame.headers.get("streamtype", ""))
        if kind is None or kind in self._ids:
            await self._connection.send(self._writer.refuse(frame.stream_id))
            return
        self._ids[kind] = frame.stream_id
        self._kinds[frame.stream_id] = kind
        await self._connection.send(self._writer.reply(frame.stream_id))
        if frame.is_last:
            self._enqueue(StreamMessage(kind, None))

    def _enqueue(self, message: StreamMessage) -> None:
        if message.stream in (STDIN, RESIZE):
            self._received.append(message)
