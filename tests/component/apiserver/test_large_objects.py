"""Objects of the largest request size: rejected or stored without delaying other requests."""

from __future__ import annotations

import asyncio
import json

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, UserInfo
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.clock import SystemClock
from podlife.wire import Handler, Query, Request, Response


class Everybody:
    """Authenticates every request as the admin."""

    def authenticate(self, request: Request) -> UserInfo:
        return ADMIN

    def find_token(self, token: str) -> UserInfo | None:
        return None


@pytest.fixture
async def handler() -> Handler:
    server = assemble(MemoryStore(), clock=SystemClock(), authenticator=Everybody())  # type: ignore[arg-type]
    await create_system_namespaces(server.registry, ADMIN)
    return server


async def send(
    handler: Handler, method: str, path: str, body: object = None, kind: str = "json", accept: str = ""
) -> Response:
    data = b"" if body is None else json.dumps(body).encode()
    headers = {"Content-Type": f"application/{kind}", "Accept": accept}
    return await handler(Request(method, path, Query(), headers, data))


async def turns_during(
    handler: Handler, method: str, path: str, body: object = None, kind: str = "json", accept: str = ""
) -> int:
    """How often the event loop ran other tasks while the request was served."""
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.get_running_loop().create_task(somebody_else())
    await asyncio.sleep(0)
    before = turns
    response = await send(handler, method, path, body, kind, accept)
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


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH, MERGE = "json-patch+json", "merge-patch+json"


async def with_large(handler: Handler) -> str:
    """The path of an object that is large, and made."""
    data = {f"key-{number}": "v" for number in range(20_000)}
    made = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "large"}, "data": data})
    assert made.status == 201
    return f"{CONFIG_MAPS}/large"


@pytest.mark.parametrize("accept", ["application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"])
async def test_a_large_object_is_shown_in_another_form_while_others_get_their_turns(
    handler: Handler, accept: str
) -> None:
    path = await with_large(handler)
    at_once = await turns_at_once(handler)
    assert await turns_during(handler, "GET", path, accept=accept) > at_once


async def test_a_small_patch_of_a_large_object_is_applied_while_others_get_their_turns(
    handler: Handler,
) -> None:
    path = await with_large(handler)
    at_once = await turns_at_once(handler)
    assert await turns_during(handler, "PATCH", path, {"data": {"a": "b"}}, MERGE) > at_once


async def test_small_patches_cannot_make_an_object_larger_than_a_request(handler: Handler) -> None:
    path = "/api/v1/namespaces/default/endpoints"
    addresses = [{"ip": f"10.0.{number // 250}.{number % 250}"} for number in range(5_000)]
    growing = {"metadata": {"name": "growing"}, "subsets": [{"addresses": addresses, "ports": [{"port": 1}]}]}
    assert (await send(handler, "POST", path, growing)).status == 201
    copy = [{"op": "copy", "from": "/subsets/0", "path": "/subsets/-"}]
    codes = [(await send(handler, "PATCH", f"{path}/growing", copy, JSON_PATCH)).status for _ in range(15)]
    assert (codes[0], codes[-1]) == (200, 413)


@pytest.mark.parametrize("kind", ["json", "yaml"])
async def test_more_fields_and_elements_than_anybody_means_are_refused(handler: Handler, kind: str) -> None:
    pod = {"metadata": {"name": "many"}, "spec": {"containers": [{}] * 300_000}}
    answer = await send(handler, "POST", PODS, pod, kind)
    assert answer.status in (400, 413)
    assert isinstance(answer.body, bytes)
    assert b"0000" in answer.body


async def test_commas_in_strings_are_no_elements(handler: Handler) -> None:
    table = {"metadata": {"name": "table"}, "data": {"csv": '\\",' * 200_000}}
    assert (await send(handler, "POST", CONFIG_MAPS, table)).status == 201


async def test_many_warnings_are_told_in_few_headers(handler: Handler) -> None:
    unknown = {f"field-{number}": 1 for number in range(120)}
    answer = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "odd"}, **unknown})
    told = [text for name, text in answer.headers if name == "Warning"]
    assert answer.status == 201
    assert len(told) == 51
    assert told[-1] == '299 - "and 50 more warnings"'


async def test_long_warnings_are_cut_as_upstream_cuts_them(handler: Handler) -> None:
    unknown = {f"{number}{'x' * 1_000}": 1 for number in range(10)}
    answer = await send(handler, "POST", CONFIG_MAPS, {"metadata": {"name": "odd"}, **unknown})
    told = [text for name, text in answer.headers if name == "Warning"]
    assert len(told) == 10
    assert max(map(len, told)) < 300
