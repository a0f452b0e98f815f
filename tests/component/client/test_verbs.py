"""What each verb sends, what it makes of the answer, and what it repeats; under virtual time, with no socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote_plus

import msgspec
import pytest

from podlife.api.selectors import parse_label_selector
from podlife.client import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    BadAnswerError,
    Client,
    DeadlineError,
    DeleteOptions,
    InProcessTransport,
    Limiter,
    LimiterSettings,
    ListOptions,
    LogOptions,
    NotSentError,
    PatchType,
    WithdrawnError,
    WriteOptions,
)
from podlife.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    PodlifeError,
    TooManyRequestsError,
    UnreachableError,
)
from podlife.testing import virtual_time
from podlife.wire import Peer, Query, Request, Response

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}}


def answer(value: Any, status: int = 200, **headers: str) -> Response:
    return Response(status, json.dumps(value).encode(), headers=headers)


def failure(code: int, reason: str, **details: Any) -> Response:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"{reason}!"}
    return answer({**status, "details": details}, code)


class Server:
    """Answers with what it was given, the last of it again and again, and remembers what it was asked."""

    def __init__(self, *answers: Response | Exception | Callable[[], Awaitable[Response]]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(given, Exception):
            raise given
        return given if isinstance(given, Response) else await given()

    def client(self, **settings: Any) -> Client:
        return Client(InProcessTransport(self), **settings)


def now() -> float:
    return asyncio.get_running_loop().time()


POD_PATH = "/api/v1/namespaces/ns/pods/a"
DELETE_OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("call", "line", "body"),
    [
        (lambda c: c.get(PODS, "a", "ns", resource_version="0"), f"GET {POD_PATH}?resourceVersion=0", None),
        (lambda c: c.get(NODES, "n1", subresource="status"), "GET /api/v1/nodes/n1/status?", None),
        (
            lambda c: c.list(
                PODS,
                options=ListOptions(
                    label_selector=parse_label_selector("app in (b,a)"),
                    field_selector="status.phase=Running",
                    limit=5,
                ),
            ),
            "GET /api/v1/pods?labelSelector=app in (a,b)&fieldSelector=status.phase=Running&limit=5",
            None,
        ),
        (
            lambda c: c.create(PODS, POD, options=WriteOptions(dry_run=True, field_validation="Strict")),
            "POST /api/v1/namespaces/ns/pods?dryRun=All&fieldValidation=Strict",
            POD,
        ),
        (
            lambda c: c.create(NAMESPACES, {"metadata": {"name": "x"}}),
            "POST /api/v1/namespaces?",
            {"metadata": {"name": "x"}},
        ),
        (lambda c: c.update(PODS, POD), f"PUT {POD_PATH}?", POD),
        (lambda c: c.update(PODS, POD, subresource="status"), f"PUT {POD_PATH}/status?", POD),
        (
            lambda c: c.patch(PODS, "a", {"spec": None}, "ns", type=PatchType.STRATEGIC),
            f"PATCH {POD_PATH}?",
            {"spec": None},
        ),
        (
            lambda c: c.patch(PODS, "a", POD, "ns", options=WriteOptions(field_manager="me", force=True)),
            f"PATCH {POD_PATH}?fieldManager=me&force=true",
            POD,
        ),
        (
            lambda c: c.delete(
                PODS, "a", "ns", options=DeleteOptions(0, "Foreground", "u1", "7", dry_run=True)
            ),
            f"DELETE {POD_PATH}?",
            {
                **DELETE_OPTIONS,
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Foreground",
                "preconditions": {"uid": "u1", "resourceVersion": "7"},
                "dryRun": ["All"],
            },
        ),
        (
            lambda c: c.delete_collection(PODS, "ns", selection=ListOptions(label_selector="a=b")),
            "DELETE /api/v1/namespaces/ns/pods?labelSelector=a=b",
            DELETE_OPTIONS,
        ),
        (
            lambda c: c.evict("a", "ns", options=DeleteOptions(uid="u1")),
            f"POST {POD_PATH}/eviction?",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": "a", "namespace": "ns"},
                "deleteOptions": {**DELETE_OPTIONS, "preconditions": {"uid": "u1"}},
            },
        ),
        (
            lambda c: c.bind("a", "ns", "n1", uid="u1"),
            f"POST {POD_PATH}/binding?",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "a", "namespace": "ns", "uid": "u1"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
            },
        ),
        (
            lambda c: c.scale(DEPLOYMENTS, "d", "ns", 3),
            "PATCH /apis/apps/v1/namespaces/ns/deployments/d/scale?",
            {"spec": {"replicas": 3}},
        ),
    ],
)
@virtual_time
async def test_a_verb_sends(call: Callable[[Client], Awaitable[Any]], line: str, body: Any) -> None:
    server = Server(answer({"metadata": {}}))
    await call(server.client())
    (request,) = server.requests
    assert f"{request.method} {request.path}?{unquote_plus(request.query.raw)}" == line
    assert (json.loads(request.body) if request.body else None) == body


@virtual_time
async def test_a_patch_says_in_its_content_type_how_it_is_meant() -> None:
    server = Server(answer({}))
    for type_ in PatchType:
        await server.client().patch(PODS, "a", [] if type_ is PatchType.JSON else {}, "ns", type=type_)
    assert [request.headers["Content-Type"] for request in server.requests] == [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.get(PODS, "", "ns"),
        lambda c: c.delete(PODS, "", "ns"),
        lambda c: c.delete(PODS, "a"),
        lambda c: c.create(PODS, {"metadata": {"name": "a"}}),
        lambda c: c.update(PODS, {"metadata": {"namespace": "ns"}}),
    ],
)
@virtual_time
async def test_a_call_that_would_mean_a_whole_collection_is_never_sent(
    call: Callable[[Client], Awaitable[Any]],
) -> None:
    server = Server(answer({}))
    with pytest.raises(ValueError):
        await call(server.client())
    assert server.requests == []


class Metadata(msgspec.Struct):
    name: str


class PodName(msgspec.Struct):
    metadata: Metadata


@virtual_time
async def test_objects_come_back_as_dictionaries_or_as_the_view_that_is_asked_for() -> None:
    listed = {"metadata": {"resourceVersion": "9", "remainingItemCount": 4}, "items": [POD]}
    server = Server(answer(POD), answer(POD), answer(listed), answer({"metadata": {}, "items": None}))
    client = server.client()
    assert await client.get(PODS, "a", "ns") == POD
    assert (await client.get(PODS, "a", "ns", view=PodName)).metadata.name == "a"
    page = await client.list(PODS, view=PodName)
    assert [pod.metadata.name for pod in page.items] == ["a"]
    assert (page.resource_version, page.remaining) == ("9", 4)
    assert (await client.list(PODS)).items == []


@pytest.mark.parametrize(
    "body", [b'{"metadata":', b"[]", b"\xff", b'{"metadata":' * 5000, b'{"metadata":{}}']
)
@virtual_time
async def test_an_answer_that_cannot_be_read_is_a_typed_error(body: bytes) -> None:
    client = Server(Response(200, body)).client()
    with pytest.raises(BadAnswerError, match="the answer to GET /api/v1/namespaces/ns/pods/a"):
        await client.get(PODS, "a", "ns", view=PodName)


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (failure(404, "NotFound", name="a"), NotFoundError),
        (failure(409, "AlreadyExists"), AlreadyExistsError),
        (failure(409, "Conflict"), ConflictError),
        (Response(418, b"<html>", content_type="text/html"), ApiError),
        (Response(302, b""), ApiError),
    ],
)
@virtual_time
async def test_a_refusal_is_the_typed_error_that_its_status_describes(
    refusal: Response, error: type[ApiError]
) -> None:
    server = Server(refusal)
    with pytest.raises(error) as raised:
        await server.client().get(PODS, "a", "ns")
    assert raised.value.code == refusal.status
    assert len(server.requests) == 1


@virtual_time
async def test_a_write_refused_with_retry_after_goes_out_again_then_and_everybody_waits() -> None:
    busy = answer({}, 429, **{"Retry-After": "7"})
    server = Server(busy, answer(POD))
    client = server.client()
    first, second = await asyncio.gather(client.create(PODS, POD), after(1, client))
    assert first == POD
    assert second == 7
    assert now() == 7
    assert client.limiter.state.limit == 8


async def after(seconds: float, client: Client) -> float:
    """When a request that begins after `seconds` is answered."""
    await asyncio.sleep(seconds)
    await client.get(PODS, "b", "ns")
    return now()


@virtual_time
async def test_a_retry_after_past_the_deadline_is_raised_at_once() -> None:
    client = Server(answer({}, 503, **{"Retry-After": "120"})).client(timeout_seconds=60)
    with pytest.raises(ApiError) as raised:
        await client.create(PODS, POD)
    assert raised.value.retry_after_seconds == 120
    assert now() == 0


@virtual_time
async def test_a_request_held_back_past_its_deadline_says_so() -> None:
    client = Server(answer({}, 429, **{"Retry-After": "120"})).client(timeout_seconds=60)
    with pytest.raises(TooManyRequestsError):
        await client.create(PODS, POD)
    with pytest.raises(DeadlineError, match="held back for 60 s"):
        await client.get(PODS, "a", "ns")
    assert now() == 60


@virtual_time
async def test_a_read_survives_a_server_that_is_ill_for_a_moment_and_a_write_does_not_try() -> None:
    ill = failure(500, "InternalError")
    server = Server(ill, UnreachableError("reset"), answer(POD))
    assert await server.client().get(PODS, "a", "ns") == POD
    assert len(server.requests) == 3
    server = Server(ill)
    with pytest.raises(ApiError):
        await server.client().create(PODS, POD)
    assert len(server.requests) == 1


@virtual_time
async def test_an_eviction_that_a_budget_forbids_is_an_answer_that_slows_nobody_down() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 2 healthy pods"}]
    server = Server(failure(429, "TooManyRequests", causes=causes, retryAfterSeconds=10))
    client = server.client()
    with pytest.raises(TooManyRequestsError) as raised:
        await client.evict("a", "ns")
    assert raised.value.retry_after_seconds == 10
    assert len(server.requests) == 1
    assert client.limiter.state.limit == 16
    assert client.limiter.state.paused_until == 0


async def never() -> Response:
    await asyncio.sleep(3600)
    raise AssertionError


@virtual_time
async def test_the_time_that_was_allowed_is_told_whatever_was_left_for_the_last_attempt() -> None:
    """Calls that fail alike say the same: a sweep tells of them together."""
    server = Server(answer({}, 429, **{"Retry-After": "1"}), never)
    with pytest.raises(UnreachableError, match=r"^no answer to GET /api/v1/namespaces/ns/pods/a in 8 s$"):
        await server.client(timeout_seconds=8).get(PODS, "a", "ns")
    assert (len(server.requests), now()) == (2, 8)


@virtual_time
async def test_a_deadline_that_passes_without_an_answer_halves_the_limit() -> None:
    client = Server(never).client(timeout_seconds=30)
    with pytest.raises(DeadlineError):
        await client.get(PODS, "a", "ns")
    assert now() == 30
    assert client.limiter.state.limit == 8
    with pytest.raises(DeadlineError):
        await client.with_timeout(5).get(PODS, "a", "ns")
    assert now() == 35


def page(names: list[str], token: str = "", revision: str = "5") -> Response:
    items = [{"metadata": {"name": name}} for name in names]
    return answer({"metadata": {"resourceVersion": revision, "continue": token}, "items": items})


@virtual_time
async def test_a_long_list_is_read_in_pages_that_belong_together() -> None:
    server = Server(page(["a", "b"], "t1"), page(["c"], "t2"), page(["d"]))
    options = ListOptions(limit=2, resource_version="5", resource_version_match="Exact")
    listed = await server.client().list_all(PODS, options=options, view=PodName)
    assert [pod.metadata.name for pod in listed.items] == ["a", "b", "c", "d"]
    assert listed.resource_version == "5"
    assert [request.query.raw for request in server.requests] == [
        "limit=2&resourceVersion=5&resourceVersionMatch=Exact",
        "limit=2&continue=t1",
        "limit=2&continue=t2",
    ]


@virtual_time
async def test_a_list_that_expires_on_the_way_is_read_anew_as_a_whole() -> None:
    server = Server(page(["a"], "t1"), failure(410, "Expired"), page(["b", "c"], revision="9"))
    listed = await server.client().list_all(PODS, options=ListOptions(limit=1))
    assert [pod["metadata"]["name"] for pod in listed.items] == ["b", "c"]
    assert listed.resource_version == "9"
    assert server.requests[-1].query.raw == ""


@virtual_time
async def test_a_list_at_a_revision_that_is_gone_from_the_start_is_not_replaced_by_another() -> None:
    server = Server(failure(410, "Expired"), page(["b"]))
    with pytest.raises(ExpiredError):
        await server.client().list_all(PODS, options=ListOptions(resource_version="1"))
    assert len(server.requests) == 1


@virtual_time
async def test_a_list_that_expires_between_pages_is_told_to_who_reads_the_pages() -> None:
    client = Server(page(["a"], "t1"), failure(410, "Expired")).client()
    with pytest.raises(ExpiredError):
        async for _ in client.pages(PODS):
            pass


@virtual_time
async def test_warnings_are_passed_on() -> None:
    warned: list[str] = []
    said = '299 - "unknown field \\"spec.x\\"", 299 - "second"'
    await Server(answer(POD, Warning=said)).client(on_warning=warned.append).create(PODS, POD)
    assert warned == ['unknown field "spec.x"', "second"]


@virtual_time
async def test_a_log_is_streamed_and_closed_at_the_servers_side_when_its_reader_stops() -> None:
    closed = asyncio.Event()

    async def lines() -> Any:
        try:
            while True:
                yield b"line\n"
                await asyncio.sleep(1)
        finally:
            closed.set()

    async def respond() -> Response:
        return Response(200, lines(), "text/plain")

    server = Server(respond)
    client = server.client()
    stream = client.logs("a", "ns", LogOptions(container="c", follow=True, tail_lines=0))
    assert [await anext(stream), await anext(stream)] == [b"line\n", b"line\n"]
    assert client.limiter.state.in_flight == 0
    await stream.aclose()
    assert closed.is_set()
    assert server.requests[0].query.raw == "container=c&follow=true&tailLines=0"


@virtual_time
async def test_the_in_process_transport_says_who_is_asking() -> None:
    server = Server(Response(200, [b'{"a"', b":1}"]))
    transport = InProcessTransport(server, headers={"Authorization": "Bearer t"}, peer=Peer("me", ("g",)))
    client = Client(transport)
    assert (await client.request("GET", "/x", headers={"X": "y"})).body == b'{"a":1}'
    (request,) = server.requests
    assert request.headers == {"Authorization": "Bearer t", "Accept": "application/json", "X": "y"}
    assert request.peer == Peer("me", ("g",))
    assert isinstance(request.query, Query)
    await client.close()
    with pytest.raises(NotSentError):
        await client.request("GET", "/x")


@virtual_time
async def test_a_login_that_takes_long_takes_nothing_from_the_deadline_of_the_request() -> None:
    class LoggingIn(InProcessTransport):
        async def prepare(self) -> None:
            await asyncio.sleep(100)

    client = Client(LoggingIn(Server(answer(POD))), timeout_seconds=60)
    assert await client.get(PODS, "a", "ns") == POD
    assert now() == 100


# A caller who withdraws: what is on the wire is finished, and nothing else is sent.


async def after_ten_seconds() -> Response:
    await asyncio.sleep(10)
    return answer({})


def names_asked(server: Server) -> list[str]:
    return [request.path.rpartition("/")[2] for request in server.requests]


async def outcomes(client: Client, names: str) -> list[object]:
    calls = (client.delete(PODS, name, "ns") for name in names)
    return await asyncio.gather(*calls, return_exceptions=True)


@virtual_time
async def test_calls_on_the_wire_are_answered_and_those_in_line_are_never_sent() -> None:
    server = Server(after_ten_seconds)
    limiter = Limiter(LimiterSettings(initial=2))
    client = server.client(limiter=limiter)
    loop = asyncio.get_running_loop()
    loop.call_later(1, client.withdraw)
    answers = await outcomes(client, "abcde")
    assert [isinstance(answer, WithdrawnError) for answer in answers] == [False, False, True, True, True]
    assert (answers[:2], names_asked(server)) == ([{}, {}], ["a", "b"])
    assert (loop.time(), limiter.waiting, limiter.state.in_flight) == (10, 0, 0)


@virtual_time
async def test_whoever_waits_to_try_again_withdraws_at_once() -> None:
    server = Server(failure(429, "TooManyRequests", retryAfterSeconds=30))
    client = server.client()
    loop = asyncio.get_running_loop()
    loop.call_later(1, client.withdraw)
    answers = await outcomes(client, "ab")
    assert all(isinstance(answer, WithdrawnError) for answer in answers)
    # The second stands behind the first, which was told to come back: it was never sent.
    assert (loop.time(), names_asked(server)) == (1, ["a"])


@virtual_time
async def test_afterwards_nothing_is_sent_but_by_others_on_the_same_connection() -> None:
    server = Server(answer({}))
    client = server.client()
    apart = client.apart()
    apart.withdraw()
    [refused] = await outcomes(apart, "a")
    assert isinstance(refused, PodlifeError)
    assert await outcomes(client, "b") == [{}]
    assert names_asked(server) == ["b"]
