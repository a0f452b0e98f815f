"""Who calls and what they may do: asked of the API server, and remembered for a while."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from podlife.client import NODES
from podlife.kubelet.server import ApiAccess, Caller, HttpError
from podlife.kubelet.server.auth import subresources_of
from podlife.testing import virtual_time
from podlife.wire import Request, Response
from tests.kit.embedded import connect, refusal

ANN = Caller("ann", "7", ("people", "system:authenticated"), (("scope", ("a", "b")),))


class Server:
    """Knows one token, and what `ann` may do."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.asked: list[dict[str, Any]] = []
        self.is_down = False
        self.access = ApiAccess(connect(self), "n1")

    async def __call__(self, request: Request) -> Response:
        if self.is_down:
            return refusal(403, "Forbidden")
        review = json.loads(request.body)
        spec = review["spec"]
        self.asked.append(spec)
        if review["kind"] == "TokenReview":
            user = {"username": "ann", "uid": "7", "groups": ["people"], "extra": {"scope": ["a", "b"]}}
            known = spec["token"] == "good"
            status: dict[str, Any] = {"authenticated": True, "user": user} if known else {"user": {}}
        else:
            status = {"allowed": spec["resourceAttributes"]["subresource"] in self.allowed}
        return Response(201, json.dumps({**review, "status": status}).encode())

    async def may(self, path: str, method: str = "GET") -> bool:
        try:
            await self.access.authorize(ANN, method, path)
        except HttpError as refused:
            return refused.code != 403
        return True


def subject(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"subject": tuple((pair,) for pair in pairs)}


@virtual_time
async def test_a_certificate_speaks_for_its_subject() -> None:
    certificate = subject(("organizationName", "a"), ("organizationName", "b"), ("commonName", "me"))
    caller = await Server().access.authenticate(certificate, "")
    assert caller == Caller("me", groups=("a", "b", "system:authenticated"))


@virtual_time
@pytest.mark.parametrize(
    "header", ["", "good", "Basic good", "Bearer", "Bearer ", "Bearer bad", "Bearer b\x00d"]
)
async def test_nobody_is_anonymous(header: str) -> None:
    assert await Server().access.authenticate(None, header) is None


@virtual_time
async def test_a_certificate_without_a_name_is_nobody() -> None:
    assert await Server().access.authenticate(subject(("organizationName", "a")), "") is None


@virtual_time
async def test_whose_token_it_is_is_remembered_for_two_minutes() -> None:
    server = Server()
    for _ in range(2):
        assert await server.access.authenticate(None, "bearer good") == ANN
    assert len(server.asked) == 1
    await asyncio.sleep(121)
    server.is_down = True
    assert await server.access.authenticate(None, "Bearer good") is None


@virtual_time
async def test_what_a_caller_may_is_asked_with_all_that_is_known_of_them() -> None:
    server = Server("proxy")
    assert await server.may("/exec/default/web/main", "POST")
    attributes = {
        "verb": "create",
        "version": "v1",
        "resource": "nodes",
        "subresource": "proxy",
        "name": "n1",
    }
    assert server.asked == [
        {
            "user": "ann",
            "uid": "7",
            "groups": ["people", "system:authenticated"],
            "extra": {"scope": ["a", "b"]},
            "resourceAttributes": attributes,
        }
    ]


@virtual_time
async def test_a_yes_holds_for_five_minutes_and_a_no_for_half_of_one() -> None:
    server = Server("metrics")
    assert await server.may("/metrics")
    assert not await server.may("/exec/a/b/c")
    server.allowed = {"proxy"}
    await asyncio.sleep(31)
    assert await server.may("/metrics")
    assert await server.may("/exec/a/b/c")
    await asyncio.sleep(300)
    assert not await server.may("/metrics")


@virtual_time
async def test_where_nobody_can_be_asked_nobody_is_let_in() -> None:
    server = Server("proxy")
    server.is_down = True
    with pytest.raises(HttpError) as refused:
        await server.access.authorize(ANN, "GET", "/pods")
    line = "Authorization error (user=ann, verb=get, resource=nodes, subresource=pods)"
    assert (refused.value.code, str(refused.value)) == (500, line)


@pytest.mark.parametrize(
    ("path", "subresources"),
    [
        ("/pods", ("pods", "proxy")),
        ("/runningpods/", ("pods", "proxy")),
        ("/healthz/ping", ("healthz", "proxy")),
        ("/metrics/x", ("metrics",)),
        ("/stats/summary", ("stats",)),
        ("/logs/x", ("log",)),
        ("/containerLogs/a/b/c", ("proxy",)),
        ("/podsx", ("proxy",)),
        ("/", ("proxy",)),
    ],
)
def test_which_right_a_path_needs(path: str, subresources: tuple[str, ...]) -> None:
    assert subresources_of(path) == subresources


@virtual_time
async def test_strangers_with_tokens_do_not_stand_before_the_work_of_the_node() -> None:
    async def answer(request: Request) -> Response:
        if "tokenreviews" in request.path:
            await asyncio.sleep(3600)
        return Response(200, b'{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}}')

    async with connect(answer) as client, asyncio.TaskGroup() as group:
        access = ApiAccess(client, "n1")
        strangers = [
            group.create_task(access.authenticate(None, f"Bearer {number}")) for number in range(300)
        ]
        await asyncio.sleep(0.1)
        async with asyncio.timeout(1):
            assert (await client.get(NODES, "n1"))["metadata"]["name"] == "n1"
        await asyncio.sleep(11)
        assert {each.result() for each in strangers} == {None}
