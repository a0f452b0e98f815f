"""Objects as large as a request may be: refused or stored, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import json

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authentication import ADMIN, User
from podlife.apiserver.namespaces import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.clock import SystemClock
from podlife.wire import Handler, Query, Request, Response


class Everybody:
    """Whoever asks is the admin."""

    def authenticate(self, request: Request) -> User:
        return ADMIN

    def find_token(self, token: str) -> User | None:
        return None


@pytest.fixture
async def handler() -> Handler:
    server = assemble(MemoryStore(), clock=SystemClock(), authenticator=Everybody())  # type: ignore[arg-type]
    await create_system_namespaces(server.registry, ADMIN)
    return server


async def send(handler: Handler, method: str, path: str, body: object = None, kind: str = "json") -> Response:
    data = b"" if body is None else json.dumps(body).encode()
    return await handler(Request(method, path, Query(), {"Content-Type": f"application/{kind}"}, data))


async def turns_during(handler: Handler, method: str, path: str, body: object, kind: str = "json") -> int:
    """How often the event loop got to somebody else while the request was answered."""
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.get_running_loop().create_task(somebody_else())
    await asyncio.sleep(0)
    before = turns
    response = await send(handler, method, path, body, kind)
    other.cancel()
    assert response.status in (201, 200, 422)
    return turns - before


async def turns_at_once(handler: Handler) -> int:
    """How many turns others get during a small request, which is answered on the event loop itself.

    How many more a large one lets them have is the scheduler's choice; without a thread it would be no more than this.
    """
    small = {"metadata": {"generateName": "small-"}}
    return await turns_during(handler, "POST", "/api/v1/namespaces/default/configmaps", small)


PODS = "/api/v1/namespaces/default/pods"


async def test_a_pod_with_thousands_of_mistakes_is_refused_while_others_get_their_turns(
    handler: Handler,
) -> None:
    pod = {"metadata": {"name": "huge"}, "spec": {"containers": [{}] * 20_000}}
    assert await turns_during(handler, "POST", PODS, pod) > await turns_at_once(handler)
    response = await send(handler, "POST", PODS, pod)
    assert isinstance(response.body, bytes)
    status = json.loads(response.body)
    assert (status["code"], len(status["details"]["causes"])) == (422, 1_000)


async def test_a_large_object_is_stored_whole_and_changed_by_put_and_patch(handler: Handler) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    data = {f"key-{number}": "v" * 100 for number in range(5_000)}
    large = {"metadata": {"name": "large"}, "data": data}
    at_once = await turns_at_once(handler)
    assert await turns_during(handler, "POST", path, large) > at_once
    large["data"] = {**data, "one-more": "x"}
    assert await turns_during(handler, "PUT", f"{path}/large", large) > at_once
    change = {"data": dict.fromkeys(data, "w" * 100)}
    assert await turns_during(handler, "PATCH", f"{path}/large", change, "merge-patch+json") > at_once
    response = await send(handler, "GET", f"{path}/large")
    assert isinstance(response.body, bytes)
    assert json.loads(response.body)["data"] == {**change["data"], "one-more": "x"}
