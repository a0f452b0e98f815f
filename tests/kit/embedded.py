"""An API server in the test's process, and a client whose requests a test can disturb.

It uses no sockets and threads: under `@virtual_time` hours pass in an instant, and the server's clock follows the
loop's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.client import Client, InProcessTransport
from podlife.testing import LoopClock
from podlife.wire import Handler, Peer, Request, Response

Disturbance = Callable[[Request, Handler], Awaitable[Response]]
"""Intercepts a request: forwards it, delays it, drops it, or responds itself."""


async def start() -> ApiHandler:
    """A server with only the system namespaces."""
    handler = assemble(MemoryStore(), clock=LoopClock(), authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN)
    return handler


def connect(handler: Handler, disturb: Disturbance | None = None, *, timeout_seconds: float = 60.0) -> Client:
    """An administrator's client."""

    async def intercepted(request: Request) -> Response:
        return await (handler(request) if disturb is None else disturb(request, handler))

    peer = Peer("admin", ("system:masters",))
    return Client(InProcessTransport(intercepted, peer=peer), timeout_seconds=timeout_seconds)


def stream_of(response: Response) -> AsyncGenerator[bytes, None]:
    """The body of a watch. Whoever takes it closes it."""
    assert isinstance(response.body, AsyncGenerator)
    return response.body


def refusal(code: int, reason: str = "", *, details: dict[str, Any] | None = None) -> Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"no: {code}",
        "details": details or {},
    }
    return Response(code, json.dumps(status).encode())
