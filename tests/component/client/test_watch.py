"""Watches: they resume where they were, notice silence, and tell what they cannot get over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from podlife.client import (
    PODS,
    BadAnswerError,
    Bookmark,
    Client,
    EventType,
    InProcessTransport,
    WatchEvent,
    WatchOptions,
)
from podlife.errors import ApiError, ExpiredError, ForbiddenError, PodlifeError, UnreachableError
from podlife.testing import virtual_time
from podlife.wire import Request, Response

Stream = Callable[[Request], AsyncIterator[bytes] | Response]


def pod(name: str, revision: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(revision)}}


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def added(name: str, revision: int) -> bytes:
    return line("ADDED", pod(name, revision))


def bookmark(revision: int, *, is_synced: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if is_synced else {}
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(revision), "annotations": annotations}})


def status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"{reason}!"}


def refusal(code: int, reason: str) -> Response:
    return Response(code, json.dumps(status(code, reason)).encode())


Script = Sequence[bytes | float | Exception]


class Server:
    """Each connection gets the next script: pieces, waits (a number of seconds), errors; or a whole answer."""

    def __init__(self, *scripts: Script | Response | Exception) -> None:
        self.scripts = list(scripts)
        self.requests: list[Request] = []
        self.open = 0

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        script = self.scripts.pop(0) if self.scripts else [3600.0]
        if isinstance(script, Exception):
            raise script
        return script if isinstance(script, Response) else Response(200, self._play(script))

    async def _play(self, script: Script) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            for step in script:
                if isinstance(step, bytes):
                    yield step
                elif isinstance(step, Exception):
                    raise step
                else:
                    await asyncio.sleep(step)
        finally:
            self.open -= 1

    @property
    def revisions(self) -> list[str]:
        return [request.query.get("resourceVersion") for request in self.requests]

    def client(self) -> Client:
        return Client(InProcessTransport(self))


async def take(events: Any, count: int) -> list[str]:
    """The next events in short: `ADDED a 5`, `bookmark 7`, `synced 7`."""
    seen = []
    for _ in range(count):
        event = await anext(events)
        if isinstance(event, Bookmark):
            seen.append(f"{'synced' if event.is_synced else 'bookmark'} {event.resource_version}")
        else:
            name = event.object["metadata"]["name"]
            seen.append(f"{event.type} {name} {event.resource_version}".rstrip())
    return seen


@virtual_time
async def test_every_change_comes_in_order_with_the_revision_to_go_on_from() -> None:
    stream = added("a", 5) + line("MODIFIED", pod("a", 6)) + line("DELETED", pod("a", 7)) + bookmark(9)
    # Cut anywhere: framing must not depend on how the bytes arrive.
    server = Server([stream[:10], stream[10:100], stream[100:], 60.0])
    options = WatchOptions(label_selector="app=web", timeout_seconds=300)
    async with aclosing(server.client().watch(PODS, "ns", resource_version="4", options=options)) as events:
        assert await take(events, 4) == ["ADDED a 5", "MODIFIED a 6", "DELETED a 7", "bookmark 9"]
        assert server.open == 1
    assert server.open == 0
    (request,) = server.requests
    assert request.path == "/api/v1/namespaces/ns/pods"
    assert request.query.raw == (
        "watch=1&allowWatchBookmarks=true&timeoutSeconds=300&labelSelector=app%3Dweb&resourceVersion=4"
    )


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([2.0], id="the server ends the stream"),
        pytest.param([UnreachableError("reset")], id="the connection is reset"),
        pytest.param([ConnectionResetError("reset")], id="the socket breaks"),
        pytest.param([b'{"type":"ADDED","object":{"meta'], id="the stream ends within a line"),
        pytest.param([b"<html>bad gateway</html>\n", 5.0], id="something else speaks"),
        pytest.param([b"\xff\xfe\n"], id="the bytes are no text"),
        pytest.param([line("NEWS", pod("x", 99))], id="the type is unknown"),
        pytest.param([3600.0], id="the server goes silent"),
        pytest.param([line("ERROR", status(500, "InternalError"))], id="the server has trouble"),
    ],
)
@virtual_time
async def test_a_stream_that_ends_is_taken_up_where_it_was(end: list[Any]) -> None:
    server = Server([added("a", 5), bookmark(8), *end], [added("b", 9), 60.0])
    async with aclosing(server.client().watch(PODS, resource_version="4")) as events:
        assert await take(events, 3) == ["ADDED a 5", "bookmark 8", "ADDED b 9"]
        assert server.open == 1
    assert server.revisions == ["4", "8"]
    assert server.client().limiter.state.in_flight == 0


@pytest.mark.parametrize(
    ("end", "said", "seconds"),
    [(3600.0, "the server was silent for 30 s", 30), (b'{"type"', "the stream ended within a line", 0)],
)
@virtual_time
async def test_what_a_watch_gets_over_is_reported(end: Any, said: str, seconds: float) -> None:
    told: list[PodlifeError] = []
    server = Server([added("a", 5), end], [added("b", 6), 3600.0])
    options = WatchOptions(read_seconds=30, report=told.append)
    async with aclosing(server.client().watch(PODS, resource_version="4", options=options)) as events:
        assert await take(events, 2) == ["ADDED a 5", "ADDED b 6"]
        assert seconds <= asyncio.get_running_loop().time() < seconds + 1
    assert [str(error) for error in told] == [said]


@virtual_time
async def test_a_watch_that_reads_slowly_does_not_call_its_server_silent() -> None:
    server = Server([added("a", 5), added("b", 6), 3600.0])
    options = WatchOptions(read_seconds=30)
    async with aclosing(server.client().watch(PODS, resource_version="4", options=options)) as events:
        await take(events, 1)
        await asyncio.sleep(300)
        assert await take(events, 1) == ["ADDED b 6"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([line("ERROR", status(410, "Expired"))], id="within the stream"),
        pytest.param([line("ERROR", status(410, "Gone"))], id="in the older word"),
        pytest.param(refusal(410, "Expired"), id="as the answer"),
    ],
)
@virtual_time
async def test_a_revision_that_is_no_longer_known_is_for_the_caller_to_list_again(script: Any) -> None:
    server = Server([added("a", 5)], script)
    async with aclosing(server.client().watch(PODS, resource_version="4")) as events:
        assert await take(events, 1) == ["ADDED a 5"]
        with pytest.raises(ExpiredError):
            await anext(events)
    assert server.open == 0


@virtual_time
async def test_a_refusal_that_will_not_change_ends_the_watch_at_once() -> None:
    with pytest.raises(ForbiddenError):
        await anext(Server(refusal(403, "Forbidden")).client().watch(PODS, resource_version="4"))
    assert asyncio.get_running_loop().time() == 0


@virtual_time
async def test_an_outage_that_lasts_too_long_is_raised_with_its_reason() -> None:
    server = Server(*[refusal(503, "ServiceUnavailable")] * 100)
    options = WatchOptions(resume_seconds=60)
    with pytest.raises(ApiError) as raised:
        await anext(server.client().watch(PODS, resource_version="4", options=options))
    assert raised.value.code == 503
    assert 60 <= asyncio.get_running_loop().time() < 75
    # It backs off: far fewer tries than a tight loop would make.
    assert 8 <= len(server.requests) <= 20


@virtual_time
async def test_a_server_that_sends_nothing_but_rubbish_is_an_outage_too() -> None:
    server = Server(*[[b"rubbish\n"]] * 100)
    with pytest.raises(UnreachableError, match="invalid watch event"):
        await anext(server.client().watch(PODS, resource_version="4", options=WatchOptions(resume_seconds=5)))


@virtual_time
async def test_streams_that_end_at_once_are_not_opened_in_a_tight_loop() -> None:
    server = Server(*[[]] * 1000)
    watching = server.client().watch(PODS, resource_version="4")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await anext(watching)
    assert len(server.requests) < 20


class Metadata(msgspec.Struct):
    name: str


class View(msgspec.Struct):
    metadata: Metadata


@virtual_time
async def test_events_are_decoded_into_the_view_that_is_asked_for() -> None:
    server = Server([added("a", 5), bookmark(6), 60.0])
    async with aclosing(server.client().watch(PODS, resource_version="4", view=View)) as events:
        assert await anext(events) == WatchEvent(EventType.ADDED, View(Metadata("a")), "5")
        assert await anext(events) == Bookmark("6")


@virtual_time
async def test_an_object_that_does_not_fit_its_view_is_skipped_and_reported_if_there_is_somebody_to_tell() -> (
    None
):
    odd = line("ADDED", {"metadata": {"name": 7, "resourceVersion": "6"}})
    told: list[PodlifeError] = []
    server = Server([added("a", 5), odd], [added("b", 7), 60.0])
    options = WatchOptions(report=told.append)
    watching = server.client().watch(PODS, resource_version="4", options=options, view=View)
    async with aclosing(watching) as events:
        seen = [await anext(events), await anext(events)]
    assert [event.object.metadata.name for event in seen if isinstance(event, WatchEvent)] == ["a", "b"]
    assert isinstance(told[0], BadAnswerError)
    # Skipped for good: the watch goes on after it.
    assert server.revisions == ["4", "6"]


@virtual_time
async def test_an_object_that_does_not_fit_its_view_ends_a_watch_that_nobody_listens_to() -> None:
    odd = line("ADDED", {"metadata": {"name": 7, "resourceVersion": "6"}})
    with pytest.raises(BadAnswerError, match="a watch cannot be read"):
        await anext(Server([odd, 60.0]).client().watch(PODS, resource_version="4", view=View))


@pytest.mark.parametrize(("type_", "is_deleted"), [("MODIFIED", False), ("DELETED", True)])
@virtual_time
async def test_an_object_that_does_not_fit_is_reported_by_its_name(type_: str, is_deleted: bool) -> None:
    class Strict(View):
        spec: int

    told: list[PodlifeError] = []
    odd = {"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "6"}, "spec": {}}
    server = Server([line(type_, odd), bookmark(7), 60.0])
    options = WatchOptions(report=told.append)
    watching = server.client().watch(PODS, resource_version="4", options=options, view=Strict)
    async with aclosing(watching) as events:
        assert await anext(events) == Bookmark("7")
    (error,) = told
    assert isinstance(error, BadAnswerError)
    assert (error.namespace, error.name, error.resource_version) == ("ns", "a", "6")
    assert error.is_deleted is is_deleted


@virtual_time
async def test_every_sign_of_life_is_told_also_one_that_brings_no_event() -> None:
    alive: list[float] = []
    loop = asyncio.get_running_loop()
    server = Server([10.0, b"\n", 10.0, added("a", 5), 10.0], [added("b", 6), 60.0])
    options = WatchOptions(on_alive=lambda: alive.append(loop.time()))
    async with aclosing(server.client().watch(PODS, resource_version="4", options=options)) as events:
        await take(events, 2)
    assert alive == [0, 10, 20, 30, 30]


@virtual_time
async def test_a_line_without_end_is_refused() -> None:
    server = Server([b"x" * 1000, b"x" * 1000, 60.0])
    options = WatchOptions(most_line_bytes=1500)
    with pytest.raises(BadAnswerError, match="longer than 1500 bytes"):
        await anext(server.client().watch(PODS, resource_version="4", options=options))
    assert server.open == 0


@pytest.mark.parametrize("revision", ["", "0"])
@virtual_time
async def test_a_watch_from_no_revision_is_refused_since_it_could_not_be_taken_up_again(
    revision: str,
) -> None:
    with pytest.raises(ValueError):
        await anext(Server().client().watch(PODS, resource_version=revision))


@virtual_time
async def test_a_very_large_object_arrives_whole() -> None:
    server = Server([added("x" * 3_000_000, 5), 60.0])
    async with aclosing(server.client().watch(PODS, resource_version="4")) as events:
        assert await take(events, 1) == [f"ADDED {'x' * 3_000_000} 5"]
