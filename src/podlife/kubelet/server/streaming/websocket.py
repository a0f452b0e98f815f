"""A command over a WebSocket: every message begins with the number of its channel.

Unlike `v4`, `v5.channel.k8s.io` lets the caller close one channel.
"""

from __future__ import annotations

from aiohttp import WSMsgType, web

from podlife.kubelet.server.streaming.options import ExecOptions
from podlife.wire import WEBSOCKET_MESSAGE_BYTES

from .streams import (
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    StreamMessage,
)

_V5 = "v5.channel.k8s.io"
PROTOCOLS = (_V5, "v4.channel.k8s.io")
_CLOSE = 255


class WebSocketStreams:
    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def receive(self) -> StreamMessage | None:
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.BINARY:
                data = bytes(message.data)
            elif message.type is WSMsgType.TEXT:
                data = str(message.data).encode()
            else:
                return None
            if (said := self._said(data)) is not None:
                return said

    async def send(self, stream: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes((stream,)) + data)

    def _said(self, message: bytes) -> StreamMessage | None:
        if len(message) == 2 and message[0] == _CLOSE and self._socket.ws_protocol == _V5:
            return StreamMessage(message[1], None)
        if len(message) > 1 and message[0] in (STDIN, RESIZE):
            return StreamMessage(message[0], message[1:])
        return None


async def open_websocket(request: web.BaseRequest, options: ExecOptions) -> web.WebSocketResponse | None:
    """The upgraded connection; None where the caller speaks none of the protocols."""
    # No heartbeat: it would cut off a caller that does not listen for a while. One that is gone the kernel notices.
    socket = web.WebSocketResponse(protocols=PROTOCOLS, compress=False, max_msg_size=WEBSOCKET_MESSAGE_BYTES)
    ready = socket.can_prepare(request)
    if not ready or ready.protocol is None:
        return None
    await socket.prepare(request)
    # An empty message on the first channel that the caller listens to tells it that the way is open.
    first = STDOUT if options.stdout else STDERR if options.stderr else ERROR
    await socket.send_bytes(bytes((first,)))
    return socket
