"""`/exec/{namespace}/{pod}[/{uid}]/{container}`: a command in a container, over a WebSocket or SPDY/3.1.

On a WebSocket every message begins with its channel number. Unlike `v4`, `v5.channel.k8s.io` lets the caller close a
single channel.
"""

from __future__ import annotations

from aiohttp import WSMsgType, web

from podlife.kubelet.pod_fields import bare_id
from podlife.kubelet.server.containers import container_to_exec, pod_to_exec
from podlife.kubelet.server.request import HttpError, KubeletRequest, ServedNode
from podlife.wire import WEBSOCKET_MESSAGE_BYTES

from .remote_command import (
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    ExecOptions,
    StreamMessage,
    exec_options,
    run_command,
)
from .spdy import serve_spdy

_V5 = "v5.channel.k8s.io"
_PROTOCOLS = (_V5, "v4.channel.k8s.io")
_CLOSE = 255


async def serve_exec(node: ServedNode, request: KubeletRequest) -> web.StreamResponse:
    namespace, name, *uid, container = request.parts
    options = exec_options(request.query)
    pod = pod_to_exec(node.pods, namespace, name, uid[0] if uid else "")
    container_id = bare_id(container_to_exec(pod, container))
    upgrade = request.http.headers.get("Upgrade", "").lower()
    if upgrade == "spdy/3.1":
        return await serve_spdy(node, request.http, container_id, options)
    if upgrade != "websocket":
        raise HttpError(400, "Upgrade request required")
    socket = await _open_websocket(request.http, options)
    if socket is None:
        raise HttpError(
            400, f"unable to upgrade: none of the protocols is known, only [{' '.join(_PROTOCOLS)}]"
        )
    try:
        streams = _WebSocketStreams(socket)
        await run_command(node.runtime, container_id, options, streams, idle_seconds=node.stream_idle_seconds)
    finally:
        await socket.close()
    return socket


class _WebSocketStreams:
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
            if (parsed := self._parse(data)) is not None:
                return parsed

    async def send(self, stream: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes((stream,)) + data)

    def _parse(self, message: bytes) -> StreamMessage | None:
        if len(message) == 2 and message[0] == _CLOSE and self._socket.ws_protocol == _V5:
            return StreamMessage(message[1], None)
        if len(message) > 1 and message[0] in (STDIN, RESIZE):
            return StreamMessage(message[0], message[1:])
        return None


async def _open_websocket(request: web.BaseRequest, options: ExecOptions) -> web.WebSocketResponse | None:
    """The upgraded connection; None if the caller supports none of the protocols."""
    # No heartbeat: it would disconnect a caller that pauses reading. TCP keepalive detects one that is gone.
    socket = web.WebSocketResponse(protocols=_PROTOCOLS, compress=False, max_msg_size=WEBSOCKET_MESSAGE_BYTES)
    ready = socket.can_prepare(request)
    if not ready or ready.protocol is None:
        return None
    await socket.prepare(request)
    # An empty message on the caller's first output channel confirms the connection.
    first = STDOUT if options.stdout else STDERR if options.stderr else ERROR
    await socket.send_bytes(bytes((first,)))
    return socket
