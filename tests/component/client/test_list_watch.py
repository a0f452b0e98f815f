"""An initial list that goes on as a watch, with streaming lists and without."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest

from podlife.client import PODS, BadAnswerError, DeadlineError, WatchEvent, WatchOptions
from podlife.errors import ForbiddenError, PodlifeError, UnreachableError
from podlife.testing import virtual_time
from podlife.wire import Response
from tests.component.client.test_watch import Server, View, added, bookmark, line, pod, refusal, status, take


def page(*pods: dict[str, Any], token: str = "") -> Response:
    metadata = {"resourceVersion": "8", "continue": token}
    return Response(200, json.dumps({"metadata": metadata, "items": pods}).encode())


class SpecView(View):
    spec: dict[str, Any] = {}


EXPECTED = ["ADDED a", "ADDED b", "synced 8", "ADDED c 9"]


@virtual_time
async def test_a_streaming_list_comes_over_the_connection_of_its_watch() -> None:
    server = Server([added("a", 5), added("b", 2), bookmark(8, is_synced=True), added("c", 9), 60.0])
    async with aclosing(server.client().list_watch(PODS, "ns")) as events:
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
    watching = (added("c", 9), 60.0)
    pages = page(pod("a", 5), pod("b", 2))
    server = Server(no, pages, watching, pages, watching)
    client = server.client()
    for namespace in ("", "ns"):
        async with aclosing(
            client.list_watch(PODS, namespace, options=WatchOptions(label_selector="x=y"))
        ) as events:
            assert await take(events, 4) == EXPECTED
    asked = ["sendInitialEvents" in request.query for request in server.requests]
    assert asked == [True, False, False, False, False]
    assert all(request.query.get("labelSelector") == "x=y" for request in server.requests)
    assert server.revisions[2] == "8"


@virtual_time
async def test_pages_are_handed_out_as_they_come() -> None:
    server = Server(refusal(400, "BadRequest"), page(pod("a", 5), token="t"), page(pod("b", 2)), [60.0])
    options = WatchOptions(page_limit=1)
    async with aclosing(server.client().list_watch(PODS, options=options)) as events:
        assert await take(events, 1) == ["ADDED a"]
        assert len(server.requests) == 2, "the second page was asked for before the first was read"
        assert await take(events, 2) == ["ADDED b", "synced 8"]
    assert [request.query.get("limit") for request in server.requests] == ["", "1", "1"]


@virtual_time
async def test_without_a_limit_the_list_is_one_page() -> None:
    server = Server(refusal(400, "BadRequest"), page(pod("a", 5)), [60.0])
    async with aclosing(server.client().list_watch(PODS, options=WatchOptions(page_limit=0))) as events:
        assert await take(events, 2) == ["ADDED a", "synced 8"]
    assert int(server.requests[1].query.get("limit")) > 1_000_000


@pytest.mark.parametrize("is_streamed", [True, False])
@virtual_time
async def test_an_object_of_the_list_that_does_not_fit_is_left_out_and_told_by_its_name(
    is_streamed: bool,
) -> None:
    odd = {"metadata": {"name": "b", "namespace": "ns", "resourceVersion": "3"}, "spec": 1}
    streamed = (added("a", 5), line("ADDED", odd), added("c", 6), bookmark(8, is_synced=True), 60.0)
    paged = (refusal(400, "BadRequest"), page(pod("a", 5), odd, pod("c", 6)), [60.0])
    server = Server(streamed) if is_streamed else Server(*paged)
    told: list[PodlifeError] = []
    following = server.client().list_watch(PODS, view=SpecView, options=WatchOptions(report=told.append))
    async with aclosing(following) as events:
        seen = [await anext(events) for _ in range(3)]
    assert [event.object.metadata.name for event in seen if isinstance(event, WatchEvent)] == ["a", "c"]
    assert [(error.namespace, error.name) for error in told if isinstance(error, BadAnswerError)] == [
        ("ns", "b")
    ]


@virtual_time
async def test_a_page_that_is_cut_is_no_page_whoever_listens() -> None:
    whole = page(pod("a", 5), pod("b", 2)).body
    assert isinstance(whole, bytes)
    server = Server(refusal(400, "BadRequest"), Response(200, whole[:-20]))
    told: list[PodlifeError] = []
    with pytest.raises(BadAnswerError):
        await anext(server.client().list_watch(PODS, options=WatchOptions(report=told.append)))
    assert told == []


@virtual_time
async def test_a_server_that_takes_no_notice_of_the_parameter_is_read_in_pages_the_next_time() -> None:
    server = Server([added("a", 5), 3600.0], page(pod("a", 5)), [60.0])
    client = server.client()
    with pytest.raises(DeadlineError):
        async with aclosing(client.list_watch(PODS)) as events:
            await take(events, 2)
    async with aclosing(client.list_watch(PODS)) as events:
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
    async with aclosing(server.client().list_watch(PODS)) as events:
        assert await take(events, 4) == ["ADDED a", "synced 8", "ADDED b 9", "ADDED c 10"]
    assert server.revisions == ["", "9"]
    assert server.open == 0


@pytest.mark.parametrize("end", [[], [UnreachableError("reset")], [b'{"type"']])
@virtual_time
async def test_a_list_that_breaks_off_is_raised_since_what_came_of_it_is_of_no_use(end: list[Any]) -> None:
    server = Server([added("a", 5), *end], [added("a", 5), bookmark(8, is_synced=True), 60.0])
    client = server.client()
    with pytest.raises(UnreachableError):
        async with aclosing(client.list_watch(PODS)) as events:
            await take(events, 2)
    async with aclosing(client.list_watch(PODS)) as events:
        assert await take(events, 2) == ["ADDED a", "synced 8"]
    assert "sendInitialEvents" in server.requests[1].query


@pytest.mark.parametrize(
    ("no", "error"),
    [(refusal(403, "Forbidden"), ForbiddenError), (UnreachableError("reset"), UnreachableError)],
)
@virtual_time
async def test_a_refusal_or_no_answer_is_raised_and_says_nothing_about_streaming(
    no: Response | Exception, error: type[Exception]
) -> None:
    server = Server(no, [bookmark(8, is_synced=True), 60.0])
    client = server.client()
    with pytest.raises(error):
        await anext(client.list_watch(PODS))
    async with aclosing(client.list_watch(PODS)) as events:
        assert await take(events, 1) == ["synced 8"]
    assert "sendInitialEvents" in server.requests[1].query


@virtual_time
async def test_metadata_alone_is_asked_for_in_lists_and_watches_with_whole_objects_as_the_second_choice() -> (
    None
):
    server = Server(refusal(400, "BadRequest"), page(pod("a", 5)), [added("b", 9), 60.0])
    async with aclosing(server.client().list_watch(PODS, options=WatchOptions(metadata_only=True))) as events:
        assert await take(events, 3) == ["ADDED a", "synced 8", "ADDED b 9"]
    accepted = [request.headers["Accept"].split(", ") for request in server.requests]
    assert [first.split(";")[1] for first, _ in accepted] == [
        "as=PartialObjectMetadata",
        "as=PartialObjectMetadataList",
        "as=PartialObjectMetadata",
    ]
    assert {second for _, second in accepted} == {"application/json"}
