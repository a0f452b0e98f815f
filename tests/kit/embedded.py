"""An API server in the test's own process, and a client's way to it that can be made as bad as a test needs.

No socket, no thread: together with `@virtual_time` whole hours pass in a moment, and the server's clock and
the loop's go together.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
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
"""Stands in the way of a request: passes it on, late or not at all, or answers instead."""


async def start() -> ApiHandler:
    """A server with nothing in it but the namespaces every cluster has."""
    handler = assemble(MemoryStore(), clock=LoopClock(), authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN)
    return handler


def connect(handler: Handler, disturb: Disturbance | None = None, *, timeout_seconds: float = 60.0) -> Client:
    """An administrator's client."""

    async def on_the_way(request: Request) -> Response:
        return await (handler(request) if disturb is None else disturb(request, handler))

    peer = Peer("admin", ("system:masters",))
    return Client(InProcessTransport(on_the_way, peer=peer), timeout_seconds=timeout_seconds)


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
