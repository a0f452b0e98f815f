"""An initial list that goes on as a watch, with streaming lists and without."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from podlife.client import PODS, Client, DeadlineError, WatchOptions
from podlife.errors import ExpiredError, ForbiddenError, UnreachableError
from podlife.wire import Response
from tests.component.client.test_watch import Server, added, bookmark, line, pod, refusal, status, take
from tests.virtual_time import virtual_time


def listed(*pods: dict[str, Any], revision: str = "8") -> Response:
    return Response(200, json.dumps({"metadata": {"resourceVersion": revision}, "items": pods}).encode())


EXPECTED = ["ADDED a", "ADDED b", "synced 8", "ADDED c 9"]


@virtual_time
async def test_a_streaming_list_comes_over_the_connection_of_its_watch() -> None:
    server = Server([added("a", 5), added("b", 2), bookmark(8, is_synced=True), added("c", 9), 60.0])
    async with aclosing(server.client().follow(PODS, "ns")) as events:
        assert await take(events, 4) == EXPECTED
    (request,) = server.requests
    assert request.query.get("sendInitialEvents") == "true"
    assert request.query.get("resourceVersionMatch") == "NotOlderThan"
    assert request.query.get("allowWatchBookmarks") == "true"
    assert "resourceVersion" not in request.query


OLD_ETCD = {
    **status(500, "InternalError"),
    "message": "a watch stream was requested by the client but the required storage feature "
    "RequestWatchProgress is disabled",
}


@pytest.mark.parametrize(
    "no",
    [
        pytest.param(refusal(400, "BadRequest"), id="the parameter is not understood"),
        pytest.param(refusal(422, "Invalid"), id="the parameter is forbidden"),
        pytest.param([line("ERROR", OLD_ETCD)], id="the etcd behind it is too old"),
    ],
)
@virtual_time
async def test_a_server_without_streaming_lists_is_read_in_pages_and_not_asked_again(no: Any) -> None:
    watching = [added("c", 9), 60.0]
    pages = listed(pod("a", 5), pod("b", 2))
    server = Server(no, pages, list(watching), pages, list(watching))
    client = server.client()
    for namespace in ("", "ns"):
        async with aclosing(
            client.follow(PODS, namespace, options=WatchOptions(label_selector="x=y"))
        ) as events:
            assert await take(events, 4) == EXPECTED
    asked = ["sendInitialEvents" in request.query for request in server.requests]
    assert asked == [True, False, False, False, False]
    assert all(request.query.get("labelSelector") == "x=y" for request in server.requests)
    assert server.revisions[2] == "8"


@virtual_time
async def test_a_server_that_takes_no_notice_of_the_parameter_is_read_in_pages_the_next_time() -> None:
    server = Server([added("a", 5), 3600.0], listed(pod("a", 5)), [60.0])
    client = server.client()
    with pytest.raises(DeadlineError):
        async with aclosing(client.follow(PODS)) as events:
            await take(events, 2)
    async with aclosing(client.follow(PODS)) as events:
        assert await take(events, 2) == ["ADDED a", "synced 8"]


@pytest.mark.parametrize(
    "end",
    [
        [2.0],
        [UnreachableError("reset")],
        [3600.0],
        [b'{"type"'],
        [line("ERROR", status(500, "InternalError"))],
    ],
)
@virtual_time
async def test_after_the_list_a_stream_that_ends_is_taken_up_where_it_was(end: list[Any]) -> None:
    server = Server([added("a", 5), bookmark(8, is_synced=True), added("b", 9), *end], [added("c", 10), 60.0])
    async with aclosing(server.client().follow(PODS)) as events:
        assert await take(events, 4) == ["ADDED a", "synced 8", "ADDED b 9", "ADDED c 10"]
    assert server.revisions == ["", "9"]
    assert server.open == 0


@pytest.mark.parametrize("end", [[], [UnreachableError("reset")], [b'{"type"']])
@virtual_time
async def test_a_list_that_breaks_off_is_raised_since_what_came_of_it_is_of_no_use(end: list[Any]) -> None:
    server = Server([added("a", 5), *end], [added("a", 5), bookmark(8, is_synced=True), 60.0])
    client = server.client()
    with pytest.raises(UnreachableError):
        async with aclosing(client.follow(PODS)) as events:
            await take(events, 2)
    async with aclosing(client.follow(PODS)) as events:
        assert await take(events, 2) == ["ADDED a", "synced 8"]
    assert "sendInitialEvents" in server.requests[1].query


@virtual_time
async def test_a_revision_lost_after_the_list_is_for_the_caller_to_start_over() -> None:
    server = Server([bookmark(8, is_synced=True), line("ERROR", status(410, "Expired"))])
    async with aclosing(server.client().follow(PODS)) as events:
        assert await take(events, 1) == ["synced 8"]
        with pytest.raises(ExpiredError):
            await anext(events)


@virtual_time
async def test_a_refusal_is_raised_and_says_nothing_about_streaming() -> None:
    server = Server(refusal(403, "Forbidden"), [bookmark(8, is_synced=True), 60.0])
    client: Client = server.client()
    with pytest.raises(ForbiddenError):
        await anext(client.follow(PODS))
    async with aclosing(client.follow(PODS)) as events:
        assert await take(events, 1) == ["synced 8"]
    assert "sendInitialEvents" in server.requests[1].query


@virtual_time
async def test_a_server_that_does_not_answer_at_all_says_nothing_about_streaming() -> None:
    server = Server(UnreachableError("reset"), [bookmark(8, is_synced=True), 60.0])
    client = server.client()
    with pytest.raises(UnreachableError):
        await anext(client.follow(PODS))
    async with aclosing(client.follow(PODS)) as events:
        assert await take(events, 1) == ["synced 8"]
    assert "sendInitialEvents" in server.requests[1].query
