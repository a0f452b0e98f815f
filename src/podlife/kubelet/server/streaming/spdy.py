"""A command over SPDY/3.1: what a kube-apiserver speaks to a node that declares no WebSockets, and an older one to any.

The caller opens a stream for each of error, stdin, stdout, stderr and resize that was asked for; then the command
starts. Unread input is bounded: beyond the limit the connection is not read.
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

from .remote_command import ERROR, RESIZE, STDERR, STDIN, STDOUT, ExecOptions, StreamMessage, run_command

_PROTOCOL = "v4.channel.k8s.io"
_ASKED_IN = "X-Stream-Protocol-Version"
_KINDS = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_OPEN_SECONDS = 30.0
_WAITING_BYTES = 256 * 1024
_UNHEARD_BYTES = 4 * 1024 * 1024
_LEAVE_SECONDS = 2.0


class _Switched(web.StreamResponse):
    """An answer after which the connection belongs to another protocol: it has no length to send or to check."""

    _length_check = False


async def serve_spdy(
    node: ServedNode, request: web.BaseRequest, container_id: str, options: ExecOptions
) -> web.StreamResponse:
    wanted = [part.strip() for line in request.headers.getall(_ASKED_IN, []) for part in line.split(",")]
    if _PROTOCOL not in wanted:
        raise HttpError(403, f"unable to upgrade: only {_PROTOCOL} is known, not [{' '.join(wanted)}]")
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", _ASKED_IN: _PROTOCOL}
    response = _Switched(status=101, headers=headers)
    streams = SpdyStreams(request, response)
    # From here on the data is not HTTP: aiohttp passes it on, as it does for a WebSocket.
    request.protocol.set_parser(streams)  # type: ignore[arg-type] # it calls just the two methods that we have
    await response.prepare(request)
    response.force_close()
    await streams.opened(_expected(options))
    idle = node.stream_idle_seconds
    await run_command(node.runtime, container_id, options, streams, idle_seconds=idle)
    await streams.end()
    return response


def _expected(options: ExecOptions) -> set[int]:
    asked = {STDIN: options.stdin, STDOUT: options.stdout, STDERR: options.stderr, RESIZE: options.tty}
    return {ERROR, *(kind for kind, is_asked in asked.items() if is_asked)}


class SpdyStreams:
    """The streams of one connection: fed by it, read and written by the command."""

    def __init__(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        self._request = request
        self._response = response
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._ids: dict[int, int] = {}
        self._kinds: dict[int, int] = {}
        self._said: deque[StreamMessage] = deque()
        self._waiting_bytes = 0
        self._is_held = False
        self._is_over = False
        self._changed = asyncio.Event()

    # From the connection

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Take what has come. Whether the connection is to be closed, and what is left: nothing ever is."""
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except SpdyError:
            self._is_over = True
        self._changed.set()
        return self._is_over, b""

    def feed_eof(self) -> None:
        self._is_over = True
        self._changed.set()

    def _take(self, frame: Frame) -> None:
        match frame:
            case StreamOpened():
                self._open(frame)
            case StreamData() if frame.stream_id in self._kinds:
                kind = self._kinds[frame.stream_id]
                if frame.data:
                    self._keep(StreamMessage(kind, frame.data))
                if frame.is_last:
                    self._keep(StreamMessage(kind, None))
            case StreamReset() if frame.stream_id in self._kinds:
                self._keep(StreamMessage(self._kinds.pop(frame.stream_id), None))
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
            self._keep(StreamMessage(kind, None))

    def _keep(self, said: StreamMessage) -> None:
        if said.stream not in (STDIN, RESIZE):
            return
        self._said.append(said)
        # An empty message costs something, too.
        self._waiting_bytes += len(said.data or b"") + 64
        self._hold_back()

    def _reply(self, frame: bytes) -> None:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            return
        transport.write(frame)
        if transport.get_write_buffer_size() > _UNHEARD_BYTES:
            # It asks and asks and does not listen.
            self._is_over = True

    def _hold_back(self) -> None:
        is_too_much = self._waiting_bytes > _WAITING_BYTES
        transport = self._request.transport
        if is_too_much == self._is_held or transport is None or transport.is_closing():
            return
        self._is_held = is_too_much
        (transport.pause_reading if is_too_much else transport.resume_reading)()

    # To the command

    async def opened(self, kinds: set[int]) -> None:
        """Wait until the caller has opened these streams; raises ConnectionError where it does not."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                while not kinds <= self._ids.keys() and not self._is_over:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ConnectionResetError("the caller has not opened its streams in time") from None
        if self._is_over:
            raise ConnectionResetError("the caller has gone")

    async def receive(self) -> StreamMessage | None:
        while not self._said:
            if self._is_over:
                return None
            self._changed.clear()
            await self._changed.wait()
        said = self._said.popleft()
        self._waiting_bytes -= len(said.data or b"") + 64
        self._hold_back()
        return said

    async def send(self, stream: int, data: bytes) -> None:
        stream_id = self._ids.get(stream)
        if stream_id is None or stream_id not in self._kinds:
            return
        if self._is_over:
            raise ConnectionResetError("the caller has gone")
        await self._response.write(self._writer.data(stream_id, data))

    async def end(self) -> None:
        """Close every stream and send GOAWAY. The caller closes the connection, within `_LEAVE_SECONDS`."""
        for kind in (STDOUT, STDERR, STDIN, RESIZE, ERROR):
            stream_id = self._ids.get(kind)
            if stream_id in self._kinds:
                await self._response.write(self._writer.data(stream_id, b"", is_last=True))
        await self._response.write(self._writer.go_away(max(self._ids.values(), default=0)))
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                while not self._is_over:
                    self._said.clear()
                    self._waiting_bytes = 0
                    self._hold_back()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return
