"""What the API holds after events were told, on servers well and ill."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.client import EVENTS, NAMESPACES, Client
from podlife.errors import UnreachableError
from podlife.events import Recorder
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import Disturbance, connect, refusal, start

POD = {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": "p", "uid": "u-1"}


class Way:
    """Answers the first requests with these instead of the server; a number of seconds is silence."""

    def __init__(self, *answers: Response | Exception | float) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []

    async def __call__(self, request: Request, handler: Handler) -> Response:
        self.requests.append(request.method)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):
            # The server has done it, and nobody hears of it.
            await handler(request)
            await asyncio.sleep(answer)
        return answer if isinstance(answer, Response) else await handler(request)


@asynccontextmanager
async def recording(
    disturb: Disturbance | None = None, **settings: Any
) -> AsyncIterator[tuple[Recorder, Client]]:
    """A recorder at work, and a client that is never disturbed."""
    handler = await start()
    recorder = Recorder(connect(handler, disturb), "podlife-gc", clock=LoopClock(), **settings)
    running = asyncio.get_running_loop().create_task(recorder.run())
    try:
        yield recorder, connect(handler)
    finally:
        assert not running.done()
        await cancel_and_wait(running)


async def events(client: Client, namespace: str = "default") -> Sequence[Object]:
    return (await client.list(EVENTS, namespace)).items


@virtual_time
async def test_an_event_is_told_with_who_what_when_and_why() -> None:
    async with recording() as (recorder, client):
        recorder.event(POD, "Normal", "Collected", "its node is gone")
        assert await recorder.flush(seconds=5)
        (event,) = await events(client)
    assert event["involvedObject"] == POD
    assert event["metadata"]["name"].startswith("p.")
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Collected", "its node is gone")
    assert event["source"] == {"component": "podlife-gc"}
    assert event["reportingComponent"] == "podlife-gc"
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2030-01-01T00:00:00Z"


@virtual_time
async def test_the_same_event_again_is_counted_on_the_first() -> None:
    async with recording() as (recorder, client):
        for _ in range(3):
            recorder.event(POD, "Normal", "Collected", "again")
            await asyncio.sleep(60)
        (event,) = await events(client)
    assert (event["count"], event["message"]) == (3, "again")
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (
        "2030-01-01T00:00:00Z",
        "2030-01-01T00:02:00Z",
    )
    assert recorder.counts.sent == 3


@virtual_time
async def test_too_much_about_one_object_is_not_sent_but_counted() -> None:
    async with recording() as (recorder, client):
        for _ in range(40):
            recorder.event(POD, "Normal", "Collected", "again")
        assert await recorder.flush(seconds=5)
        (event,) = await events(client)
    assert event["count"] == 25
    assert (recorder.counts.sent, recorder.counts.filtered) == (25, 15)


@virtual_time
async def test_an_event_about_what_has_no_namespace_is_in_the_default_one() -> None:
    async with recording() as (recorder, client):
        recorder.event({"kind": "Node", "name": "n", "namespace": ""}, "Warning", "NotReady", "m")
        assert await recorder.flush(seconds=5)
        (event,) = await events(client)
    assert event["involvedObject"] == {"kind": "Node", "name": "n"}
    assert recorder.counts.failed == 0


@virtual_time
async def test_an_event_that_has_expired_is_told_anew_with_its_count() -> None:
    async with recording() as (recorder, client):
        recorder.event(POD, "Normal", "Collected", "again")
        assert await recorder.flush(seconds=5)
        (event,) = await events(client)
        await client.delete(EVENTS, event["metadata"]["name"], "default")
        recorder.event(POD, "Normal", "Collected", "again")
        assert await recorder.flush(seconds=5)
        (event,) = await events(client)
    assert event["count"] == 2


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(refusal(500, "InternalError"), id="500"),
        pytest.param(refusal(503, "ServiceUnavailable"), id="503"),
        pytest.param(refusal(429, "TooManyRequests"), id="429"),
        pytest.param(UnreachableError("cut off"), id="cut off"),
    ],
)
@virtual_time
async def test_an_event_is_tried_again_when_the_server_is_ill(trouble: Response | Exception) -> None:
    way = Way(*[trouble] * 11)
    async with recording(way) as (recorder, client):
        recorder.event(POD, "Normal", "Collected", "m")
        assert await recorder.flush(seconds=300)
        assert len(await events(client)) == 1
    assert recorder.counts.sent == 1


@virtual_time
async def test_an_event_is_given_up_after_twelve_tries_and_the_next_one_is_sent() -> None:
    way = Way(*[refusal(500, "InternalError")] * 12)
    async with recording(way) as (recorder, client):
        recorder.event(POD, "Normal", "Collected", "lost")
        recorder.event(POD, "Normal", "Collected", "told")
        assert await recorder.flush(seconds=300)
        assert [event["message"] for event in await events(client)] == ["told"]
    assert (recorder.counts.sent, recorder.counts.failed) == (1, 1)
    assert len(way.requests) == 13


@virtual_time
async def test_an_event_whose_answer_was_lost_is_not_told_twice() -> None:
    async with recording(Way(1000.0)) as (recorder, client):
        recorder.event(POD, "Normal", "Collected", "m")
        assert await recorder.flush(seconds=300)
        recorder.event(POD, "Normal", "Collected", "m")
        assert await recorder.flush(seconds=5)
        (event,) = await events(client)
    assert event["count"] == 2
    assert recorder.counts.failed == 0


@pytest.mark.parametrize("code", [400, 401, 403, 422])
@virtual_time
async def test_an_event_that_the_server_refuses_is_not_tried_again(code: int) -> None:
    way = Way(refusal(code))
    async with recording(way) as (recorder, client):
        recorder.event(POD, "Normal", "Collected", "refused")
        recorder.event(POD, "Normal", "Collected", "told")
        assert await recorder.flush(seconds=5)
        assert [event["message"] for event in await events(client)] == ["told"]
    assert way.requests == ["POST", "POST"]
    assert (recorder.counts.sent, recorder.counts.failed) == (1, 1)


@virtual_time
async def test_a_refusal_is_logged_once_and_not_for_every_event(caplog: pytest.LogCaptureFixture) -> None:
    async with recording(Way(*[refusal(403, "Forbidden")] * 3)) as (recorder, _):
        for number in range(3):
            recorder.event(POD, "Normal", "Collected", f"{number}")
        assert await recorder.flush(seconds=5)
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert warnings == ["no event about Pod p: no: 403"]


@virtual_time
async def test_events_in_a_namespace_that_goes_or_has_gone_are_lost_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording() as (recorder, client):
        await client.create(NAMESPACES, {"metadata": {"name": "going"}})
        await client.delete(NAMESPACES, "going")
        for namespace in ("going", "gone"):
            recorder.event({**POD, "namespace": namespace}, "Normal", "Collected", "m")
        assert await recorder.flush(seconds=5)
    assert recorder.counts.failed == 0
    assert recorder.counts.sent == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@virtual_time
async def test_what_comes_on_top_of_a_full_queue_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with recording(most_waiting=3) as (recorder, client):
        for number in range(10):
            recorder.event({**POD, "name": f"p{number}"}, "Normal", "Collected", "m")
        assert recorder.waiting == 3
        assert await recorder.flush(seconds=5)
        assert len(await events(client)) == 3
    assert recorder.counts.dropped == 7
    assert [record.message for record in caplog.records] == ["3 events queued, dropping more"]


@pytest.mark.parametrize(
    ("regarding", "type_"),
    [
        pytest.param(POD, "Fatal", id="no such type"),
        pytest.param({"kind": "Pod"}, "Normal", id="no name"),
        pytest.param(None, "Normal", id="no object"),
        pytest.param({**POD, "namespace": "a/b"}, "Normal", id="no such namespace is possible"),
    ],
)
@virtual_time
async def test_nonsense_is_counted_and_neither_raises_nor_ends_the_recorder(
    regarding: Any, type_: str
) -> None:
    async with recording() as (recorder, client):
        recorder.event(regarding, type_, "Why", "m")
        recorder.event(POD, "Normal", "Why", "told")
        assert await recorder.flush(seconds=5)
        assert [event["message"] for event in await events(client)] == ["told"]
    assert recorder.counts.failed == 1


@virtual_time
async def test_flush_does_not_wait_for_a_server_that_does_not_answer() -> None:
    async def never(request: Request, handler: Handler) -> Response:
        await asyncio.sleep(1_000_000)
        raise AssertionError

    async with recording(never) as (recorder, _):
        recorder.event(POD, "Normal", "Why", "m")
        assert not await recorder.flush(seconds=5)
        assert asyncio.get_running_loop().time() == pytest.approx(5)


@virtual_time
async def test_at_most_one_request_is_under_way() -> None:
    under_way = most = 0

    async def slow(request: Request, handler: Handler) -> Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return await handler(request)

    async with recording(slow) as (recorder, client):
        for number in range(20):
            recorder.event({**POD, "name": f"p{number}"}, "Normal", "Why", "m")
        assert await recorder.flush(seconds=100)
        assert len(await events(client)) == 20
    assert most == 1
