"""The kubelet's HTTPS server, for the API server and callers that it trusts.

`run` binds, serves until cancelled and closes all connections within a deadline. Every request is authenticated and
authorized first, as upstream; no path is exempt. `serving_certificate` provides the certificate, `connections` limits
callers, and `logs` and `streaming` implement logs, exec, attach and port-forward.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from podlife.api.codec import Object, encode, format_time
from podlife.bounded_connection import enable_keepalive
from podlife.client import Connection
from podlife.clock import Clock
from podlife.errors import ConfigError
from podlife.kubelet.pod_fields import Pod
from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerState,
    ContainerStatus,
    SandboxState,
    SandboxStatus,
)
from podlife.pki.csr import CertificateSigner

from .auth import Caller
from .connections import BoundedServer
from .logs.handler import serve_logs
from .request import HttpError, KubeletRequest, ServedNode, parse_request
from .serving_certificate import CertificateSettings, ServingCertificate
from .streaming.exec_handler import serve_attach, serve_exec
from .streaming.port_forward import serve_port_forward

log = logging.getLogger(__name__)

DECLARED_FEATURES = ("ExtendWebSocketsToKubelet",)
"""For the node's `status.declaredFeatures`: kube-apiserver then forwards the WebSocket of an exec unchanged."""

_STOP_SECONDS = 1.0
_HANDSHAKE_SECONDS = 15.0

Handler = Callable[[ServedNode, KubeletRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`port` 0 selects a free one."""

    certificate: CertificateSettings
    bind: str = "127.0.0.1"
    port: int = 10250
    most_connections: int = 1000

    @classmethod
    def for_node(
        cls, name: str, folder: Path, connection: Connection, *, address: str = "127.0.0.1", port: int = 10250
    ) -> Self:
        """Serve on one address of the node, for callers with a client certificate of the cluster's CA, as API servers
        have. Keys are stored in `folder`."""
        authority = connection.certificate_authority
        certificate = CertificateSettings(name, folder, names=(address,), client_authority=authority)
        return cls(certificate, bind=address, port=port)


class Access(Protocol):
    """Authentication and authorization."""

    async def authenticate(
        self, certificate: Mapping[str, Any] | None, authorization: str
    ) -> Caller | None: ...

    async def authorize(self, caller: Caller, method: str, path: str) -> None:
        """Raises HttpError."""


class KubeletServer:
    """Sets `port` and then `ready` when it listens."""

    def __init__(
        self,
        node: ServedNode,
        access: Access,
        settings: ServerSettings,
        *,
        signing: CertificateSigner,
        clock: Clock,
    ) -> None:
        self._node = node
        self._access = access
        self._settings = settings
        self._certificate = ServingCertificate(settings.certificate, clock, signing)
        self.port = 0
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Serve until cancelled. Raises ConfigError if it cannot listen or has no certificate."""
        context = self._certificate.open()
        server = BoundedServer(self._respond, self._settings.most_connections)
        bind, port = self._settings.bind, self._settings.port
        try:
            listener = await asyncio.get_running_loop().create_server(
                server, bind, port, ssl=context, ssl_handshake_timeout=_HANDSHAKE_SECONDS
            )
        except (OSError, OverflowError) as error:
            raise ConfigError(_why_not_bound(bind, port, error)) from None
        try:
            for each in listener.sockets:
                enable_keepalive(each)
            self.port = listener.sockets[0].getsockname()[1]
            self.ready.set()
            await self._certificate.run()
        finally:
            self.ready.clear()
            listener.close()
            await server.stop(_STOP_SECONDS)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._serve(request)
        except HttpError as refusal:
            response = web.Response(status=refusal.code, text=str(refusal))
            if refusal.code == 401:
                # Connections are limited; an unauthenticated one is not kept.
                response.force_close()
            return response
        except ConnectionError:
            raise
        except (ContainerRuntimeError, OSError) as failure:
            if request.writer.output_size:
                # The response has begun: only a reset shows the caller that it is incomplete.
                raise ConnectionResetError(str(failure)) from None
            return web.Response(status=500, text=str(failure))

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        parsed = parse_request(request)
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        caller = await self._access.authenticate(certificate, request.headers.get("Authorization", ""))
        if caller is None:
            raise HttpError(401, "Unauthorized")
        await self._access.authorize(caller, request.method, parsed.path)
        return await _handler(parsed)(self._node, parsed)


def _handler(parsed: KubeletRequest) -> Handler:
    """The handler of this path; raises HttpError if there is none."""
    methods, counts, handler = _ROUTES.get(parsed.root, ((), (), None))
    if (
        handler is None
        or len(parsed.parts) not in counts
        or (parsed.root == "stats" and parsed.parts != ("summary",))
    ):
        raise HttpError(404, "404 page not found")
    if parsed.http.method not in methods:
        raise HttpError(405, f"405: {parsed.http.method} is not allowed here")
    return handler


async def _serve_pods(node: ServedNode, parsed: KubeletRequest) -> web.StreamResponse:
    return _pod_list(node.pods.pods())


async def _serve_running_pods(node: ServedNode, parsed: KubeletRequest) -> web.StreamResponse:
    """What the runtime runs, regardless of the API server's pods."""
    containers: dict[str, list[ContainerStatus]] = {}
    for container in await node.runtime.list_containers():
        if container.state is ContainerState.RUNNING:
            containers.setdefault(container.sandbox_id, []).append(container)
    sandboxes = await node.runtime.list_sandboxes()
    running = [
        _running_pod(sandbox, containers.get(sandbox.id, []))
        for sandbox in sandboxes
        if sandbox.state is SandboxState.READY or sandbox.id in containers
    ]
    return _pod_list(running)


async def _serve_health(node: ServedNode, parsed: KubeletRequest) -> web.StreamResponse:
    if trouble := node.trouble():
        raise HttpError(500, trouble)
    return web.Response(text="ok")


async def _serve_metrics(node: ServedNode, parsed: KubeletRequest) -> web.StreamResponse:
    return web.Response(body=generate_latest(node.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def _serve_summary(node: ServedNode, parsed: KubeletRequest) -> web.StreamResponse:
    """Pods and their start times; resource usage is not measured, and no numbers are made up."""
    pods = [
        {
            "podRef": {key: pod["metadata"].get(key, "") for key in ("name", "namespace", "uid")},
            "startTime": (pod.get("status") or {}).get("startTime"),
        }
        for pod in node.pods.pods()
    ]
    return _json({"node": {"nodeName": node.name}, "pods": pods})


def _running_pod(sandbox: SandboxStatus, containers: Iterable[ContainerStatus]) -> Object:
    config = sandbox.config
    metadata = {
        "name": config.name,
        "namespace": config.namespace,
        "uid": config.pod_uid,
        "creationTimestamp": format_time(sandbox.created_at),
    }
    shown = [{"name": each.config.name, "image": each.config.image, "resources": {}} for each in containers]
    return {"metadata": metadata, "spec": {"containers": shown}, "status": {}}


def _pod_list(pods: Iterable[Pod]) -> web.Response:
    items = [dict(pod) for pod in pods]
    return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})


def _json(value: Object) -> web.Response:
    return web.Response(body=encode(value), content_type="application/json")


async def _not_supported(node: ServedNode, parsed: KubeletRequest) -> web.StreamResponse:
    raise HttpError(501, f"{parsed.root} is not offered by this node: use exec")


_READ = ("GET", "HEAD")
_CONNECT = ("GET", "POST")
_ROUTES: Mapping[str, tuple[tuple[str, ...], tuple[int, ...], Handler | None]] = {
    "containerLogs": (("GET",), (3,), serve_logs),
    "exec": (_CONNECT, (3, 4), serve_exec),
    "attach": (_CONNECT, (3, 4), serve_attach),
    "portForward": (_CONNECT, (2, 3), serve_port_forward),
    "run": (("POST",), (3, 4), _not_supported),
    "pods": (_READ, (0,), _serve_pods),
    "runningpods": (_READ, (0,), _serve_running_pods),
    "healthz": (_READ, (0, 1), _serve_health),
    "metrics": (_READ, (0,), _serve_metrics),
    "stats": (_READ, (1,), _serve_summary),
}


def _why_not_bound(bind: str, port: int, error: Exception) -> str:
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            return f"port {port} on {bind} is in use: give the node another with --listen HOST:PORT (0: any free one)"
        case errno.EACCES:
            return f"port {port} may not be used by this user: give the node one above 1023"
        case _:
            return f"the node cannot listen on {bind}, port {port}: {error}"
