"""`/portForward/{namespace}/{pod}[/{uid}]`: connections to ports of a pod, over SPDY/3.1 or a WebSocket.

A SPDY connection carries any number of forwarded connections, each with a data and an error stream; it is the TCP
connection itself, or is tunnelled in the messages of a WebSocket, as kubectl does. On a plain WebSocket the ports are
in the query, and each has two channels. SPDY as Kubernetes uses it has no flow control: while one connection does not
take its data, the others wait; one that takes nothing for `_STALL_SECONDS` is reset. A failure is told on the error
stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Protocol

from aiohttp import WSMsgType, web

from podlife.kubelet.runtime import ContainerRuntimeError, ForwardsPorts, PodConnection
from podlife.kubelet.server.containers import pod_to_exec
from podlife.kubelet.server.request import HttpError, KubeletRequest, ServedNode
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

from .exec_handler import ChannelCodec, accept_websocket
from .spdy import accept_spdy

_PROTOCOL = "portforward.k8s.io"
_TUNNELLED = f"SPDY/3.1+{_PROTOCOL}"
_CHANNELS = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io")
_PIECE_BYTES = 32 * 1024
_MOST_FORWARDS = 256
_MOST_PORTS = 100
_STALL_SECONDS = 30.0

OpenPort = Callable[[int], AbstractAsyncContextManager[PodConnection]]


class Bytes(Protocol):
    """What SPDY is carried over. `receive` returns None at the end; `send` raises ConnectionError."""

    async def receive(self) -> bytes | None: ...

    async def send(self, message: bytes, /) -> None: ...


async def serve_port_forward(node: ServedNode, request: KubeletRequest) -> web.StreamResponse:
    namespace, name, *uid = request.parts
    pod = pod_to_exec(node.pods, namespace, name, uid[0] if uid else "")
    if not isinstance(node.runtime, ForwardsPorts):
        raise HttpError(501, f"the {node.runtime.name} runtime cannot forward ports")
    sandboxes = await node.runtime.list_sandboxes(pod_uid=pod["metadata"]["uid"])
    ready = max((each for each in sandboxes if each.is_ready), key=lambda each: each.created_at, default=None)
    if ready is None:
        raise HttpError(500, f"failed to find sandbox for pod {name}_{namespace}: it does not run")
    open_port = partial(node.runtime.port_forward, ready.id)
    idle, http = node.stream_idle_seconds, request.http
    upgrade = http.headers.get("Upgrade", "").lower()
    if upgrade == "spdy/3.1":
        connection = await accept_spdy(http, _PROTOCOL)
        await SpdyForwarder(open_port, name).run(connection, idle)
        await connection.close()
        return connection.response
    if upgrade != "websocket":
        raise HttpError(400, "Upgrade request required")
    if _TUNNELLED in http.headers.get("Sec-WebSocket-Protocol", ""):
        socket = await accept_websocket(http, (_TUNNELLED,))
        try:
            await SpdyForwarder(open_port, name).run(_Messages(socket), idle)
        finally:
            await socket.close()
        return socket
    ports = _ports(request.query.all("port"))
    socket = await accept_websocket(http, _CHANNELS, is_optional=True)
    try:
        await ChannelForwarder(socket, open_port, name).run(ports, idle)
    finally:
        await socket.close()
    return socket


def _ports(given: list[str]) -> list[int]:
    texts = [text for value in given for text in value.split(",")]
    if not texts:
        raise HttpError(400, 'query parameter "port" is required')
    if len(texts) > _MOST_PORTS:
        raise HttpError(400, f"more than {_MOST_PORTS} ports")
    return [_port(text) for text in texts]


def _port(text: str) -> int:
    """Raises HttpError."""
    if not (text.isascii() and text.isdecimal()) or int(text) >= 1 << 16:
        raise HttpError(400, f'unable to parse "{text[:100]}" as a port')
    if int(text) == 0:
        raise HttpError(400, f'port "{text}" must be > 0')
    return int(text)


class Forward:
    """One connection to a port. `send` carries its data to the caller, and None when it has ended."""

    def __init__(self, port: int, send: Callable[[bytes | None], Awaitable[None]]) -> None:
        self.port = port
        self._send = send
        self._target: PodConnection | None = None
        self._is_decided = asyncio.Event()

    async def run(self, open_port: OpenPort) -> str:
        """Carry data until the pod's side ends; returns why it failed, empty for an end without failure."""
        try:
            async with open_port(self.port) as self._target:
                self._is_decided.set()
                while data := await self._target.reader.read(_PIECE_BYTES):
                    await self._send(data)
            await self._send(None)
        except ConnectionError:
            # It has begun: one of the two sides has gone.
            if self._target is None:
                raise
        except (ContainerRuntimeError, OSError) as failure:
            return str(failure)
        finally:
            self._target = None
            self._is_decided.set()
        return ""

    async def feed(self, data: bytes, *, is_last: bool) -> bool:
        """Write to the pod, at its pace; False if it takes nothing for too long, or has gone."""
        try:
            async with asyncio.timeout(_STALL_SECONDS):
                await self._is_decided.wait()
                if self._target is not None and data:
                    await self._target.write(data)
                if self._target is not None and is_last:
                    await self._target.write_eof()
        except (OSError, TimeoutError):
            return False
        return True


class _Forwarder:
    """Runs forwards, each in a task, until the caller has gone or nothing is carried for `idle` seconds."""

    def __init__(self, open_port: OpenPort, pod_name: str) -> None:
        self._open_port = open_port
        self._pod_name = pod_name
        self._tasks: dict[Forward, asyncio.Task[None]] = {}
        self._idle: Callable[[], None] = lambda: None

    async def _serve(self, listen: Callable[[asyncio.TaskGroup], Awaitable[None]], idle: float) -> None:
        loop = asyncio.get_running_loop()
        # A failure means that the caller has gone, or is not understood: there is nothing to report.
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(idle) as limit, asyncio.TaskGroup() as group:
                    self._idle = lambda: limit.reschedule(loop.time() + idle)
                    await listen(group)
                    for task in self._tasks.values():
                        task.cancel()
            except* (ConnectionError, SpdyError):
                pass

    def _start(
        self, group: asyncio.TaskGroup, forward: Forward, told: Callable[[str], Awaitable[None]]
    ) -> None:
        async def run() -> None:
            try:
                why = await forward.run(self._open_port)
                pod = f"error forwarding port {forward.port} to pod {self._pod_name}, uid "
                await told(f"{pod}: {why}" if why else "")
            finally:
                self._tasks.pop(forward, None)

        self._tasks[forward] = group.create_task(run(), name=f"port-forward {forward.port}")


class SpdyForwarder(_Forwarder):
    def __init__(self, open_port: OpenPort, pod_name: str) -> None:
        super().__init__(open_port, pod_name)
        self._frames = FrameWriter()
        # By request ID: port, and the IDs of the two streams by type.
        self._requests: dict[str, tuple[int, dict[str, int]]] = {}
        self._forwards: dict[int, Forward] = {}

    async def run(self, carrier: Bytes, idle_seconds: float) -> None:
        reader = FrameReader()

        async def listen(group: asyncio.TaskGroup) -> None:
            while (data := await carrier.receive()) is not None:
                for frame in reader.feed(data):
                    await self._handle(frame, carrier, group)

        await self._serve(listen, idle_seconds)

    async def _handle(self, frame: Frame, carrier: Bytes, group: asyncio.TaskGroup) -> None:
        match frame:
            case StreamOpened():
                self._idle()
                await self._open(frame, carrier, group)
            case StreamData() if (forward := self._forwards.get(frame.stream_id)) is not None:
                self._idle()
                if not await forward.feed(frame.data, is_last=frame.is_last):
                    await carrier.send(self._frames.refuse(frame.stream_id))
                    self._end(frame.stream_id)
            case StreamReset():
                self._end(frame.stream_id)
            case Ping() if frame.number % 2:
                await carrier.send(self._frames.ping(frame.number))

    async def _open(self, frame: StreamOpened, carrier: Bytes, group: asyncio.TaskGroup) -> None:
        headers = frame.headers
        kind = headers.get("streamtype", "")
        request_id = headers.get("requestid", "")
        try:
            port = _port(headers.get("port", ""))
        except HttpError:
            kind = ""
        known_port, streams = self._requests.get(request_id) or (0, {})
        is_full = len(self._requests) + len(self._tasks) >= _MOST_FORWARDS
        if kind not in ("data", "error") or kind in streams or (is_full and not streams):
            await carrier.send(self._frames.refuse(frame.stream_id))
            return
        if known_port not in (0, port):
            await carrier.send(self._frames.refuse(frame.stream_id))
            return
        await carrier.send(self._frames.reply(frame.stream_id))
        streams[kind] = frame.stream_id
        self._requests[request_id] = (port, streams)
        if len(streams) == 2:
            del self._requests[request_id]
            self._begin(port, streams["data"], streams["error"], carrier, group)

    def _begin(
        self, port: int, data_id: int, error_id: int, carrier: Bytes, group: asyncio.TaskGroup
    ) -> None:
        async def send(data: bytes | None) -> None:
            self._idle()
            await carrier.send(self._frames.data(data_id, data or b"", is_last=data is None))

        async def told(why: str) -> None:
            self._forwards.pop(data_id, None)
            await carrier.send(self._frames.data(error_id, why.encode(), is_last=True))
            if why:
                await send(None)

        forward = self._forwards[data_id] = Forward(port, send)
        self._start(group, forward, told)

    def _end(self, stream_id: int) -> None:
        forward = self._forwards.pop(stream_id, None)
        if forward is not None and forward in self._tasks:
            self._tasks[forward].cancel()


class ChannelForwarder(_Forwarder):
    """Two channels for each port of the query: data and error. Each begins with the number of the port."""

    def __init__(self, socket: web.WebSocketResponse, open_port: OpenPort, pod_name: str) -> None:
        super().__init__(open_port, pod_name)
        self._codec = ChannelCodec(socket)

    async def run(self, ports: list[int], idle_seconds: float) -> None:
        async def listen(group: asyncio.TaskGroup) -> None:
            forwards = [await self._begin(index, port, group) for index, port in enumerate(ports)]
            while self._tasks and (message := await self._codec.receive()) is not None:
                self._idle()
                index, is_error = divmod(message[0], 2)
                if not is_error and index < len(forwards):
                    await forwards[index].feed(message[1], is_last=False)

        await self._serve(listen, idle_seconds)

    async def _begin(self, index: int, port: int, group: asyncio.TaskGroup) -> Forward:
        for channel in (2 * index, 2 * index + 1):
            await self._codec.send(channel, port.to_bytes(2, "little"))

        async def send(data: bytes | None) -> None:
            self._idle()
            if data is not None:
                await self._codec.send(2 * index, data)

        async def told(why: str) -> None:
            if why:
                await self._codec.send(2 * index + 1, why.encode())
            if len(self._tasks) == 1:
                # The last one: a plain channel cannot be closed alone.
                await self._codec.close()

        forward = Forward(port, send)
        self._start(group, forward, told)
        return forward


class _Messages:
    """SPDY in the binary messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        return bytes(message.data) if message.type is WSMsgType.BINARY else None

    async def send(self, message: bytes) -> None:
        await self._socket.send_bytes(message)
