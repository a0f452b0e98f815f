"""Exec over SPDY/3.1, which a kube-apiserver uses for a node that does not declare WebSockets, and older ones always.

The caller opens one stream each for error, stdin, stdout, stderr and resize, as requested; then the command starts.
Unread input is bounded: beyond the limit, reading from the connection pauses.
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
    GoAway,
    Ping,
    SpdyError,
    StreamData,
    StreamOpened,
    StreamReset,
)

from .remote_command import ERROR, RESIZE, STDERR, STDIN, STDOUT, ExecOptions, RemoteCommand, StreamMessage

_PROTOCOL = "v4.channel.k8s.io"
_PROTOCOL_HEADER = "X-Stream-Protocol-Version"
_KINDS = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_OPEN_SECONDS = 30.0
_WAITING_BYTES = 256 * 1024
_UNREAD_REPLY_BYTES = 4 * 1024 * 1024
_CLOSE_SECONDS = 2.0


class _UpgradeResponse(web.StreamResponse):
    """A response that upgrades the connection: it has no length to send or check."""

    _length_check = False


async def serve_spdy(
    node: ServedNode, request: web.BaseRequest, command: RemoteCommand
) -> web.StreamResponse:
    wanted = [
        part.strip() for line in request.headers.getall(_PROTOCOL_HEADER, []) for part in line.split(",")
    ]
    if _PROTOCOL not in wanted:
        raise HttpError(403, f"unable to upgrade: only {_PROTOCOL} is known, not [{' '.join(wanted)}]")
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", _PROTOCOL_HEADER: _PROTOCOL}
    response = _UpgradeResponse(status=101, headers=headers)
    streams = SpdyStreams(request, response)
    # From here on the data is not HTTP: aiohttp passes it to us, as it does for a WebSocket.
    request.protocol.set_parser(streams)  # type: ignore[arg-type] # only the two methods that we have are called
    await response.prepare(request)
    response.force_close()
    await streams.opened(_expected(command.options))
    await command.run(streams, idle_seconds=node.stream_idle_seconds)
    await streams.end()
    return response


def _expected(options: ExecOptions) -> set[int]:
    requested = {STDIN: options.stdin, STDOUT: options.stdout, STDERR: options.stderr, RESIZE: options.tty}
    return {ERROR, *(kind for kind, is_requested in requested.items() if is_requested)}


class SpdyStreams:
    """The streams of one connection: fed by the connection, used by the command."""

    def __init__(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        self._request = request
        self._response = response
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._ids: dict[int, int] = {}
        self._kinds: dict[int, int] = {}
        self._received: deque[StreamMessage] = deque()
        self._waiting_bytes = 0
        self._is_paused = False
        self._is_closed = False
        self._changed = asyncio.Event()

    # From the connection

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Handle received data. Returns whether to close the connection, and unused data, which is always empty."""
        try:
            for frame in self._reader.feed(data):
                self._handle_frame(frame)
        except SpdyError:
            self._is_closed = True
        self._changed.set()
        return self._is_closed, b""

    def feed_eof(self) -> None:
        self._is_closed = True
        self._changed.set()

    def _handle_frame(self, frame: Frame) -> None:
        match frame:
            case StreamOpened():
                self._open(frame)
            case StreamData() if frame.stream_id in self._kinds:
                kind = self._kinds[frame.stream_id]
                if frame.data:
                    self._enqueue(StreamMessage(kind, frame.data))
                if frame.is_last:
                    self._enqueue(StreamMessage(kind, None))
            case StreamReset() if frame.stream_id in self._kinds:
                self._enqueue(StreamMessage(self._kinds.pop(frame.stream_id), None))
            case Ping():
                self._reply(self._writer.ping(frame.number))
            case GoAway():
                # Open streams continue; a caller that leaves closes the connection.
                pass

    def _open(self, frame: StreamOpened) -> None:
        kind = _KINDS.get(frame.headers.get("streamtype", ""))
        if kind is None or kind in self._ids:
            self._reply(self._writer.refuse(frame.stream_id))
            return
        self._ids[kind] = frame.stream_id
        self._kinds[frame.stream_id] = kind
        self._reply(self._writer.reply(frame.stream_id))
        if frame.is_last:
            self._enqueue(StreamMessage(kind, None))

    def _enqueue(self, message: StreamMessage) -> None:
        if message.stream not in (STDIN, RESIZE):
            return
        self._received.append(message)
        # Empty messages use memory, too.
        self._waiting_bytes += len(message.data or b"") + 64
        self._throttle()

    def _reply(self, frame: bytes) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            return
        transport.write(frame)
        if transport.get_write_buffer_size() > _UNREAD_REPLY_BYTES:
            # The caller keeps sending without reading the replies.
            self._is_closed = True

    def _throttle(self) -> None:
        is_too_much = self._waiting_bytes > _WAITING_BYTES
        transport = self._request.transport
        if is_too_much == self._is_paused or transport is None or transport.is_closing():
            return
        self._is_paused = is_too_much
        (transport.pause_reading if is_too_much else transport.resume_reading)()

    # To the command

    async def opened(self, kinds: set[int]) -> None:
        """Wait until the caller has opened these streams. Raises ConnectionError if it does not."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                while not kinds <= self._ids.keys() and not self._is_closed:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ConnectionResetError("the caller has not opened its streams in time") from None
        if self._is_closed:
            raise ConnectionResetError("the caller has gone")

    async def receive(self) -> StreamMessage | None:
        while not self._received:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        message = self._received.popleft()
        self._waiting_bytes -= len(message.data or b"") + 64
        self._throttle()
        return message

    async def send(self, stream: int, data: bytes) -> None:
        stream_id = self._ids.get(stream)
        if stream_id is None or stream_id not in self._kinds:
            return
        if self._is_closed:
            raise ConnectionResetError("the caller has gone")
        await self._response.write(self._writer.data(stream_id, data))

    async def end(self) -> None:
        """Close every stream and send GOAWAY. The caller closes the connection, within `_CLOSE_SECONDS`."""
        for kind in (STDOUT, STDERR, STDIN, RESIZE, ERROR):
            stream_id = self._ids.get(kind)
            if stream_id in self._kinds:
                await self._response.write(self._writer.data(stream_id, b"", is_last=True))
        await self._response.write(self._writer.go_away(max(self._ids.values(), default=0)))
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                while not self._is_closed:
                    self._received.clear()
                    self._waiting_bytes = 0
                    self._throttle()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return
