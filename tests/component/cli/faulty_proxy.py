"""An HTTP relay before an API server that misbehaves on request: refuses, stalls, cuts, truncates.

`proxy.fault` is asked about every request and gives what to do instead of passing it on unharmed, or None. What
went through is in `proxy.seen`, in order. It is plain HTTP on loopback, so that nothing needs to be trusted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

_HOP_BY_HOP = {"transfer-encoding", "content-length", "connection", "content-encoding"}


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    query: str

    @property
    def is_watch(self) -> bool:
        return "watch=" in self.query

    def matches(self, method: str, path: str) -> bool:
        return self.method == method and re.fullmatch(path, self.path) is not None


@dataclass(frozen=True)
class Answer:
    """Said instead of the server's answer; nothing reaches the server."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """The connection ends without an answer. `after`: the server has done what was asked."""

    after: bool = False


@dataclass(frozen=True)
class Hang:
    """No answer at all, for as long as the client waits."""


@dataclass(frozen=True)
class Truncate:
    """The answer, or the first piece of a stream, ends in the middle as if that were its end."""


Fault = Answer | Cut | Hang | Truncate


class FirstDeletes:
    """The fault for the first so many deletions; `met` is how many there were."""

    def __init__(self, count: int, fault: Fault) -> None:
        self._count = count
        self._fault = fault
        self.met = 0

    def __call__(self, seen: Seen) -> Fault | None:
        if seen.method != "DELETE" or self.met == self._count:
            return None
        self.met += 1
        return self._fault


class FaultyProxy:
    def __init__(self, open_session: Callable[[], aiohttp.ClientSession]) -> None:
        self._open_session = open_session
        self._session: aiohttp.ClientSession | None = None
        self._quit = asyncio.Event()
        self.port = 0
        # Of a command that is to go through it.
        self.flags: list[str] = []
        self.seen: list[Seen] = []
        self.fault: Callable[[Seen], Fault | None] = lambda _: None
        # Streams that are held back for as long as this says so; what came meanwhile is passed on afterwards.
        self.holds: Callable[[Seen], bool] = lambda _: False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, method: str, path: str) -> int:
        return sum(request.matches(method, path) for request in self.seen)

    async def start(self) -> web.AppRunner:
        self._session = self._open_session()
        runner = web.AppRunner(_application(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def stop(self, runner: web.AppRunner) -> None:
        self._quit.set()
        await runner.cleanup()
        assert self._session is not None
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = Seen(request.method, request.path, request.query_string)
        self.seen.append(seen)
        fault = self.fault(seen)
        if isinstance(fault, Answer):
            headers = {"Content-Type": "application/json", **fault.headers}
            return web.Response(status=fault.status, body=fault.body, headers=headers)
        if isinstance(fault, Hang):
            await self._quit.wait()
        if isinstance(fault, Cut | Hang):
            if isinstance(fault, Cut) and fault.after:
                await self._pass_on(request)
            return self._cut(request)
        if isinstance(fault, Truncate) and not seen.is_watch:
            status, headers, body = await self._pass_on(request)
            return web.Response(status=status, headers=headers, body=body[: len(body) // 2])
        return await self._relay(request, seen, is_whole=fault is None)

    def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _pass_on(self, request: web.Request) -> tuple[int, dict[str, str], bytes]:
        async with self._send(request, await request.read()) as answer:
            return answer.status, _headers(answer), await answer.read()

    def _send(
        self, request: web.Request, body: bytes
    ) -> aiohttp.client._BaseRequestContextManager[aiohttp.ClientResponse]:
        assert self._session is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        return self._session.request(request.method, request.rel_url, data=body or None, headers=headers)

    async def _relay(self, request: web.Request, seen: Seen, *, is_whole: bool) -> web.StreamResponse:
        try:
            async with self._send(request, await request.read()) as answer:
                response = web.StreamResponse(status=answer.status, headers=_headers(answer))
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    while self.holds(seen):
                        await asyncio.sleep(0.02)
                    await response.write(piece if is_whole else piece[: len(piece) // 2])
                    if not is_whole:
                        break
                await response.write_eof()
                return response
        except (aiohttp.ClientError, OSError):
            return self._cut(request)


def _headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}


def _application(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", handle)
    return application


@asynccontextmanager
async def proxied(open_session: Callable[[], aiohttp.ClientSession]) -> AsyncIterator[FaultyProxy]:
    """A relay before the server that a session leads to, for as long as the block lasts."""
    proxy = FaultyProxy(open_session)
    runner = await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop(runner)
