"""The fence check that is a web service: what confirms that a machine is dead, and that nothing else does."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from podlife.nodehealth.out_of_service import FenceAnswer, FenceResult, FenceSubject, WebhookCheck
from tests.kit.real_parts import free_port

SUBJECT = FenceSubject("n1", "u1", "aws:///i-1", ("10.0.0.1",), 301.7)
Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handle: Handle) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/dead?key=secret"
    finally:
        await runner.cleanup()


async def asked(handle: Handle, seconds: float = 60.0) -> FenceAnswer:
    async with serving(handle) as url:
        return await WebhookCheck(url, seconds=seconds).ask(SUBJECT)


def answering(status: int, text: str) -> Handle:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    return handle


async def test_it_is_asked_with_all_that_is_known_of_the_node() -> None:
    seen: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.method, request.content_type, await request.json()))
        return web.json_response({"dead": True, "since": "yesterday"})

    answer = await asked(handle)
    assert (answer.check, answer.result) == ("webhook 127.0.0.1", FenceResult.DEAD)
    node = {"name": "n1", "uid": "u1", "providerID": "aws:///i-1", "internalIPs": ["10.0.0.1"]}
    assert seen == [("POST", "application/json", {"node": node, "notReadySeconds": 302})]


@pytest.mark.parametrize(
    ("status", "text", "result"),
    [
        (202, '{"dead": true}', FenceResult.DEAD),
        (200, '{"dead": false}', FenceResult.NOT_DEAD),
        (200, '{"dead": "true"}', FenceResult.FAILED),
        (200, '{"dead": 1}', FenceResult.FAILED),
        (200, "{}", FenceResult.FAILED),
        (200, "[true]", FenceResult.FAILED),
        (200, "true", FenceResult.FAILED),
        (200, "", FenceResult.FAILED),
        (200, '{"dead": true', FenceResult.FAILED),
        (200, "[" * 50_000, FenceResult.FAILED),
        (404, '{"dead": true}', FenceResult.FAILED),
        (500, '{"dead": true}', FenceResult.FAILED),
        (200, '{"dead": true, "why": "' + "x" * 70_000 + '"}', FenceResult.FAILED),
    ],
)
async def test_only_a_2xx_with_dead_true_confirms_it(status: int, text: str, result: FenceResult) -> None:
    answer = await asked(answering(status, text))
    assert answer.result is result
    assert "secret" not in answer.text


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    paths = []

    async def handle(request: web.Request) -> web.Response:
        paths.append(request.path)
        if request.path == "/dead":
            return web.Response(status=status, headers={"Location": "/elsewhere"})
        return web.json_response({"dead": True})

    answer = await asked(handle)
    assert (answer.result, answer.text) == (FenceResult.FAILED, f"it answered with {status}")
    assert paths == ["/dead"]


async def test_no_answer_in_time_confirms_nothing() -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.json_response({"dead": True})

    answer = await asked(hang, seconds=0.2)
    assert (answer.result, answer.text) == (FenceResult.TIMEOUT, "no answer within 0.2 s")


async def test_an_answer_that_never_ends_confirms_nothing() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"dead": true}')
        await asyncio.sleep(60)
        return response

    assert (await asked(drip, seconds=0.2)).result is FenceResult.TIMEOUT


async def test_an_answer_that_is_endless_is_not_read_to_its_end() -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)

    answer = await asked(flood)
    assert (answer.result, answer.text) == (FenceResult.FAILED, "its answer is longer than 65536 bytes")


async def test_a_connection_that_breaks_or_is_refused_confirms_nothing() -> None:
    async def cut(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    assert (await asked(cut)).result is FenceResult.FAILED
    url = f"http://127.0.0.1:{free_port()}/dead?key=secret"
    answer = await WebhookCheck(url, seconds=60).ask(SUBJECT)
    assert answer.result is FenceResult.FAILED
    assert "secret" not in answer.text


async def test_nothing_is_unpacked() -> None:
    """A small answer may unpack to one without end."""

    async def handle(_: web.Request) -> web.Response:
        packed = gzip.compress(b'{"dead": true}')
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    answer = await asked(handle)
    assert (answer.result, answer.text) == (FenceResult.FAILED, "its response is not a JSON object")
