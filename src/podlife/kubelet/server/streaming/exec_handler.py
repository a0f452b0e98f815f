"""`/exec/{namespace}/{pod}[/{uid}]/{container}`: a command in a container, over a WebSocket or over SPDY/3.1."""

from __future__ import annotations

from aiohttp import web

from podlife.kubelet.pod_fields import bare_id
from podlife.kubelet.server.containers import container_to_exec, pod_to_exec
from podlife.kubelet.server.request import HttpError, KubeletRequest
from podlife.kubelet.server.served_node import ServedNode
from podlife.kubelet.server.streaming.options import exec_options

from .remote_command import run_command
from .spdy import serve_spdy
from .websocket import PROTOCOLS, WebSocketStreams, open_websocket


async def serve_exec(node: ServedNode, asked: KubeletRequest) -> web.StreamResponse:
    namespace, name, *uid, container = asked.parts
    options = exec_options(asked.query)
    pod = pod_to_exec(node.pods, namespace, name, uid[0] if uid else "")
    container_id = bare_id(container_to_exec(pod, container))
    upgrade = asked.request.headers.get("Upgrade", "").lower()
    if upgrade == "spdy/3.1":
        return await serve_spdy(node, asked.request, container_id, options)
    if upgrade != "websocket":
        raise HttpError(400, "Upgrade request required")
    socket = await open_websocket(asked.request, options)
    if socket is None:
        raise HttpError(
            400, f"unable to upgrade: none of the protocols is known, only [{' '.join(PROTOCOLS)}]"
        )
    try:
        streams = WebSocketStreams(socket)
        await run_command(node.runtime, container_id, options, streams, idle_seconds=node.stream_idle_seconds)
    finally:
        await socket.close()
    return socket
