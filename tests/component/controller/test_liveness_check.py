"""A server that freezes with its connections open is noticed; one that speaks is left in peace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podlife.aio import cancel_and_wait
from podlife.client import NAMESPACES, PODS, Client, InProcessTransport
from podlife.controller import LivenessCheck
from podlife.testing import virtual_time
from podlife.wire import Request, Response


class Server:
    def __init__(self) -> None:
        self.is_frozen = False
        self.status = 200
        self.questions = 0
        # After so many seconds a watch brings its next line.
        self.bookmark_seconds = 0.0

    async def __call__(self, request: Request) -> Response:
        self.questions += request.path == "/version"
        if self.is_frozen:
            await asyncio.Event().wait()
        if request.query.get("watch"):
            return Response(200, self._bookmarks())
        return Response(self.status, b"{}")

    async def _bookmarks(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(self.bookmark_seconds)
            yield b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n'


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[tuple[LivenessCheck, Client]]:
    client = Client(InProcessTransport(server))
    liveness = LivenessCheck(client)
    running = asyncio.get_running_loop().create_task(liveness.run())
    try:
        yield liveness, client
    finally:
        await cancel_and_wait(running)


@virtual_time
async def test_a_server_that_freezes_is_noticed_within_forty_seconds() -> None:
    server = Server()
    async with listening(server) as (liveness, client):
        await client.get(NAMESPACES, "default")
        server.is_frozen = True
        await asyncio.sleep(39)
        assert liveness.complaint == ""
        await asyncio.sleep(2)
        assert liveness.complaint.startswith(
            "no response from the server for 40 s: no answer to GET /version in 10 s"
        )
        server.is_frozen = False
        await asyncio.sleep(15)
        assert liveness.complaint == ""


@virtual_time
async def test_what_anybody_hears_of_it_ends_the_complaint_at_once() -> None:
    server = Server()
    async with listening(server) as (liveness, client):
        server.is_frozen = True
        await asyncio.sleep(41)
        assert liveness.complaint
        server.is_frozen = False
        await client.get(NAMESPACES, "default")
        assert liveness.complaint == ""


@virtual_time
async def test_a_server_that_is_only_quiet_is_asked_now_and_then_and_is_well() -> None:
    server = Server()
    async with listening(server) as (liveness, _):
        for _ in range(300):
            await asyncio.sleep(1)
            assert liveness.complaint == ""
    assert server.questions <= 10


@virtual_time
async def test_a_refusal_is_an_answer() -> None:
    server = Server()
    server.status = 403
    async with listening(server) as (liveness, _):
        await asyncio.sleep(100)
        assert (liveness.complaint, server.questions > 0) == ("", True)


@virtual_time
async def test_a_server_that_speaks_is_never_asked() -> None:
    """Whatever it says counts, a bookmark on a watch too."""
    server = Server()
    server.bookmark_seconds = 20
    async with listening(server) as (liveness, client):

        async def follow() -> None:
            async for _ in client.watch(PODS, resource_version="1"):
                pass

        following = asyncio.get_running_loop().create_task(follow())
        await asyncio.sleep(200)
        await cancel_and_wait(following)
        assert (server.questions, liveness.complaint) == (0, "")
