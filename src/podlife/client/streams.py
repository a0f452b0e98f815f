"""Streams into pods: `exec`, `attach` and `port_forward`, over a WebSocket.

    async with client.exec("web", "default", ["cat"], stdin=True) as session:
        await session.write(b"hello")
        await session.close_stdin()
        print(await session.stdout.read(), await session.wait())

Unread output is bounded: beyond the limit nothing more is received, and the other side waits. Leaving the context ends
the connection, and with it a command. Connecting has a deadline; a stream may be silent for any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlencode

from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import decode_object, encode
from podlife.client.refs import PODS
from podlife.errors import ApiError, UnreachableError

if TYPE_CHECKING:
    WebSocket = ClientWebSocketResponse[bool]

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_V5, _V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
_STATUS_BYTES = 64 * 1024


class WebSocketTransport(Protocol):
    """What a transport needs for streams: HTTP has it, a connection within one process has not."""

    def websocket(
        self, path: str, query: str, protocols: Sequence[str], *, seconds: float
    ) -> AbstractAsyncContextManager[WebSocket]: ...


class _Channels:
    """Received messages by channel, each in a reader; receiving pauses while one of them is full."""

    def __init__(self, socket: WebSocket, count: int) -> None:
        self._socket = socket
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()
        self.readers = [asyncio.StreamReader() for _ in range(count)]
        for reader in self.readers:
            reader.set_transport(self)  # type: ignore[arg-type] # only the two methods below are called

    def pause_reading(self) -> None:
        self._may_go_on.clear()

    def resume_reading(self) -> None:
        self._may_go_on.set()

    async def pump(self) -> None:
        try:
            while (message := await self._socket.receive()).type is WSMsgType.BINARY:
                data = bytes(message.data)
                if data[1:] and data[0] < len(self.readers):
                    self.readers[data[0]].feed_data(data[1:])
                    await self._may_go_on.wait()
        finally:
            for reader in self.readers:
                reader.feed_eof()

    async def send(self, channel: int, data: bytes) -> None:
        try:
            await self._socket.send_bytes(bytes((channel,)) + data)
        except ClientError as error:
            raise ConnectionResetError(str(error)) from None


class CommandSession:
    """A command, or an attached process. With a terminal, all output is on `stdout`."""

    def __init__(self, channels: _Channels, *, can_close: bool) -> None:
        self._channels = channels
        self._can_close = can_close
        self.stdout, self.stderr = channels.readers[_STDOUT], channels.readers[_STDERR]

    async def write(self, data: bytes) -> None:
        """Raises ConnectionError if the command has ended."""
        await self._channels.send(_STDIN, data)

    async def close_stdin(self) -> None:
        """Raises UnreachableError if the server's protocol has no end of the input: that before v5."""
        if not self._can_close:
            raise UnreachableError("the server cannot end the input of a command: it is too old")
        await self._channels.send(_CLOSE, bytes((_STDIN,)))

    async def resize(self, *, columns: int, rows: int) -> None:
        await self._channels.send(_RESIZE, encode({"Width": columns, "Height": rows}))

    async def wait(self) -> int:
        """The exit code, 0 for an attached process. Raises ApiError if there was no command to end, and
        UnreachableError if the connection ended first."""
        text = await self._channels.readers[_ERROR].read(_STATUS_BYTES)
        if not text:
            raise UnreachableError("the connection ended before the command did")
        status = decode_object(text)
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [each["message"] for each in causes if each.get("reason") == "ExitCode"]
        if status.get("status") != "Success" and not codes:
            raise ApiError(str(status.get("message")), code=status.get("code") or 500)
        return int(codes[0]) if codes else 0


class ForwardedConnection:
    """A connection to a port of a pod; `reader` ends when the pod closes it."""

    def __init__(self, channels: _Channels) -> None:
        self._channels = channels
        self.reader = channels.readers[0]

    async def write(self, data: bytes) -> None:
        """Raises ConnectionError if the pod has closed the connection."""
        await self._channels.send(0, data)

    async def failure(self) -> str:
        """Why the connection failed; empty if it did not. Waits for its end."""
        return (await self._channels.readers[1].read(_STATUS_BYTES)).decode(errors="replace")


@asynccontextmanager
async def command_session(
    transport: WebSocketTransport,
    target: tuple[str, str, str],
    parameters: Sequence[tuple[str, str]],
    seconds: float,
) -> AsyncIterator[CommandSession]:
    """`target` is namespace, pod and `exec` or `attach`. Raises ApiError or UnreachableError."""
    async with _open(transport, target, parameters, (_V5, _V4), seconds, 4) as (channels, protocol):
        yield CommandSession(channels, can_close=protocol == _V5)


@asynccontextmanager
async def forwarded_connection(
    transport: WebSocketTransport, namespace: str, name: str, port: int, seconds: float
) -> AsyncIterator[ForwardedConnection]:
    target, parameters = (namespace, name, "portforward"), [("ports", str(port))]
    async with _open(transport, target, parameters, (_V4,), seconds, 2) as (channels, _):
        async with asyncio.timeout(seconds):
            # Both channels begin with the number of the port.
            for reader in channels.readers:
                await reader.readexactly(2)
        yield ForwardedConnection(channels)


@asynccontextmanager
async def _open(
    transport: WebSocketTransport,
    target: tuple[str, str, str],
    parameters: Sequence[tuple[str, str]],
    protocols: Sequence[str],
    seconds: float,
    channel_count: int,
) -> AsyncIterator[tuple[_Channels, str]]:
    namespace, name, subresource = target
    path = PODS.path(namespace, name, subresource)
    async with transport.websocket(path, urlencode(parameters), protocols, seconds=seconds) as socket:
        channels = _Channels(socket, channel_count)
        pump = spawn(channels.pump(), name=f"{subresource} of {name}", on_failure=lambda _: None)
        try:
            yield channels, socket.protocol or ""
        finally:
            await cancel_and_wait(pump)
