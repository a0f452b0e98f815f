"""Requests to an API server in the test's own process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from podlife.wire import Handler, Peer, Query, Request, Response

ADMINISTRATOR = Peer("admin", ("system:masters",))
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def send(
    handler: Handler,
    method: str,
    path: str,
    body: object = None,
    kind: str = "json",
    *,
    accept: str = "",
    peer: Peer = ADMINISTRATOR,
) -> Response:
    path, _, query = path.partition("?")
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": f"application/{kind}", "Accept": accept}
    return await handler(Request(method, path, Query(query), headers, data, peer))


async def whole(response: Response) -> bytes:
    if isinstance(response.body, AsyncIterator):
        return b"".join([part async for part in response.body])
    return response.body if isinstance(response.body, bytes) else b"".join(response.body)


async def ask(handler: Handler, method: str, path: str, body: object = None, **how: Any) -> tuple[int, Any]:
    """Code and decoded body of an answer that is no stream."""
    answer = await send(handler, method, path, body, **how)
    assert not isinstance(answer.body, AsyncIterator), f"{answer.status} and a stream"
    return answer.status, json.loads(await whole(answer))
