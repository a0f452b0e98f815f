"""Connection upgrades: a WebSocket that speaks one of Kubernetes' subprotocols, or none if none was requested.

The relay behind an upgrade may hold a connection to a kubelet, and is responsible for closing it. So it is always
called: with a closed channel if the client cannot be upgraded.
"""

from __future__ import annotations

from aiohttp import WSMsgType, web

from podlife.apiserver.http.bodies import status_of
from podlife.errors import ApiError
from podlife.wire import WEBSOCKET_MESSAGE_BYTES, Channel, Upgrade

_HEARTBEAT_SECONDS = 30.0


async def upgrade(request: web.BaseRequest, wanted: Upgrade) -> web.StreamResponse:
    socket = web.WebSocketResponse(
        protocols=wanted.protocols,
        compress=False,
        max_msg_size=WEBSOCKET_MESSAGE_BYTES,
        heartbeat=_HEARTBEAT_SECONDS,
    )
    ready = socket.can_prepare(request)
    if not ready or (wanted.protocols and ready.protocol is None):
        await wanted.relay(_ClosedChannel())
        problem = "unable to upgrade: none of the requested protocols is supported"
        return status_of(
            ApiError(problem if ready else "Upgrade request required", code=400, reason="BadRequest")
        )
    await socket.prepare(request)
    try:
        await wanted.relay(_SocketChannel(socket, ready.protocol or ""))
    finally:
        await socket.close()
    return socket


class _SocketChannel(Channel):
    def __init__(self, socket: web.WebSocketResponse, protocol: str) -> None:
        self._socket = socket
        self.protocol = protocol

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        if message.type is WSMsgType.BINARY:
            return bytes(message.data)
        if message.type is WSMsgType.TEXT:
            return str(message.data).encode()
        return None

    async def send(self, message: bytes) -> None:
        await self._socket.send_bytes(message)

    async def close(self) -> None:
        await self._socket.close()


class _ClosedChannel(Channel):
    protocol = ""

    async def receive(self) -> bytes | None:
        return None

    async def send(self, message: bytes) -> None:
        raise ConnectionResetError("the other side disconnected")

    async def close(self) -> None:
        return
