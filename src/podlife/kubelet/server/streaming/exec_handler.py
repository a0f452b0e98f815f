"""`/exec` and `/attach`, each `/{namespace}/{pod}[/{uid}]/{container}`, over a WebSocket or SPDY/3.1.

On a WebSocket every message begins with its channel number, in base64 protocols with its digit. Only
`v5.channel.k8s.io` lets the caller close a single channel. Before `v4` the end of a command is reported on the error
channel in plain text, and only if it has failed.
"""

from __future__ import annotations

import base64
import binascii
from functools import partial

from aiohttp import WSMsgType, web

from podlife.api.codec import decode_object
from podlife.kubelet.pod_fields import bare_id
from podlife.kubelet.runtime import Attachable
from podlife.kubelet.server.containers import container_to_exec, pod_to_exec
from podlife.kubelet.server.request import HttpError, KubeletRequest, ServedNode
from podlife.upgraded_connection import limit_unsent
from podlife.wire import WEBSOCKET_MESSAGE_BYTES

from .remote_command import (
    ERROR,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    RemoteCommand,
    StreamMessage,
    exec_options,
    stream_options,
)
from .spdy import serve_spdy

_V5 = "v5.channel.k8s.io"
_PROTOCOLS = (
    *(_V5, "v4.channel.k8s.io", "v4.base64.channel.k8s.io"),
    *("channel.k8s.io", "base64.channel.k8s.io"),
)
_CLOSE = 255


async def serve_exec(node: ServedNode, request: KubeletRequest) -> web.StreamResponse:
    options = exec_options(request.query)
    container_id = _container_id(node, request)
    opened = partial(node.runtime.exec, container_id, options.command, stdin=options.stdin, tty=options.tty)
    return await _serve(node, request, RemoteCommand(opened, options, "error executing command in container"))


async def serve_attach(node: ServedNode, request: KubeletRequest) -> web.StreamResponse:
    options = stream_options(request.query)
    container_id = _container_id(node, request)
    if not isinstance(node.runtime, Attachable):
        raise HttpError(501, f"the {node.runtime.name} runtime cannot attach to containers")
    opened = partial(node.runtime.attach, container_id, stdin=options.stdin)
    return await _serve(node, request, RemoteCommand(opened, options, "error attaching to container"))


def _container_id(node: ServedNode, request: KubeletRequest) -> str:
    namespace, name, *uid, container = request.parts
    pod = pod_to_exec(node.pods, namespace, name, uid[0] if uid else "")
    return bare_id(container_to_exec(pod, container))


async def _serve(node: ServedNode, request: KubeletRequest, command: RemoteCommand) -> web.StreamResponse:
    upgrade = request.http.headers.get("Upgrade", "").lower()
    if upgrade == "spdy/3.1":
        return await serve_spdy(node, request.http, command)
    if upgrade != "websocket":
        raise HttpError(400, "Upgrade request required")
    socket = await accept_websocket(request.http, _PROTOCOLS, is_optional=True)
    try:
        streams = _WebSocketStreams(socket)
        options = command.options
        # An empty message on the caller's first output channel confirms the connection.
        await streams.confirm(STDOUT if options.stdout else STDERR if options.stderr else ERROR)
        await command.run(streams, idle_seconds=node.stream_idle_seconds)
    finally:
        await socket.close()
    return socket


async def accept_websocket(
    request: web.BaseRequest, protocols: tuple[str, ...], *, is_optional: bool = False
) -> web.WebSocketResponse:
    """Raises HttpError if the caller supports none of the protocols; it may do without one if `is_optional`."""
    # No heartbeat: it would disconnect a caller that pauses reading. TCP keepalive detects one that is gone.
    socket = web.WebSocketResponse(protocols=protocols, compress=False, max_msg_size=WEBSOCKET_MESSAGE_BYTES)
    ready = socket.can_prepare(request)
    has_none = is_optional and not request.headers.get("Sec-WebSocket-Protocol", "").strip()
    if not ready or (ready.protocol is None and not has_none):
        raise HttpError(
            400, f"unable to upgrade: none of the protocols is known, only [{' '.join(protocols)}]"
        )
    limit_unsent(request)
    await socket.prepare(request)
    return socket


class ChannelCodec:
    """Messages of a WebSocket that begin with a channel: binary, or text in base64."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._is_base64 = "base64" in (socket.ws_protocol or "")

    async def receive(self) -> tuple[int, bytes] | None:
        """Channel and data; None when the caller has gone."""
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.BINARY:
                data = bytes(message.data)
            elif message.type is WSMsgType.TEXT:
                data = str(message.data).encode()
            else:
                return None
            if not data:
                continue
            if not self._is_base64:
                return data[0], data[1:]
            try:
                return data[0] - ord("0"), base64.b64decode(data[1:], validate=True)
            except binascii.Error:
                continue

    async def send(self, channel: int, data: bytes) -> None:
        if self._is_base64:
            await self._socket.send_str(chr(ord("0") + channel) + base64.b64encode(data).decode())
        else:
            await self._socket.send_bytes(bytes((channel,)) + data)

    async def close(self) -> None:
        await self._socket.close()


class _WebSocketStreams:
    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._codec = ChannelCodec(socket)
        self._can_close = socket.ws_protocol == _V5
        self._has_plain_errors = not (socket.ws_protocol or "").startswith(("v4.", "v5."))

    async def receive(self) -> StreamMessage | None:
        while (message := await self._codec.receive()) is not None:
            channel, data = message
            if channel == _CLOSE and len(data) == 1 and self._can_close:
                return StreamMessage(data[0], None)
            if channel in (STDIN, RESIZE) and data:
                return StreamMessage(channel, data)
        return None

    async def confirm(self, channel: int) -> None:
        await self._codec.send(channel, b"")

    async def send(self, stream: int, data: bytes) -> None:
        if stream == ERROR and self._has_plain_errors:
            status = decode_object(data)
            data = b"" if status.get("status") == "Success" else str(status.get("message", "")).encode()
            if not data:
                return
        await self._codec.send(stream, data)
