"""Ways to the server on which a controller is behind, cut off, or watched in what it asks for.

For `tests.kit.embedded.connect`, whose clients hold nothing that would have to be closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from podlife.wire import Handler, Request, Response
from tests.kit.embedded import Disturbance, refusal, stream_of


def is_watch(request: Request, plural: str = "") -> bool:
    return "watch" in request.query and request.path.endswith(plural)


def is_creation(request: Request, plural: str = "pods") -> bool:
    return request.method == "POST" and request.path.endswith(f"/{plural}")


class Asked:
    """Notes what was asked for, and may answer in the server's place."""

    def __init__(self, answer: Disturbance | None = None) -> None:
        self.requests: list[tuple[float, str, str]] = []
        self._answer = answer

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        self.requests.append((asyncio.get_running_loop().time(), request.method, request.path))
        return await (to_server(request) if self._answer is None else self._answer(request, to_server))

    @property
    def writes(self) -> list[tuple[float, str, str]]:
        return [each for each in self.requests if each[1] != "GET"]

    def times(self, method: str, tail: str = "") -> list[float]:
        return [at for at, how, path in self.requests if how == method and path.endswith(tail)]


async def late(body: AsyncGenerator[bytes, None], seconds: float = 2.0) -> AsyncGenerator[bytes, None]:
    async with aclosing(body):
        async for piece in body:
            await asyncio.sleep(seconds)
            yield piece


async def until(body: AsyncGenerator[bytes, None], is_cut: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Ends with the first piece that comes after the cut."""
    async with aclosing(body):
        async for piece in body:
            if is_cut():
                return
            yield piece


async def held(body: AsyncGenerator[bytes, None], flows: asyncio.Event) -> AsyncIterator[bytes]:
    async with aclosing(body):
        async for piece in body:
            await flows.wait()
            yield piece


def watching(plural: str, change: Callable[[Any], Any]) -> Disturbance:
    """Changes the streams of the watches of this resource; of all, if it is empty."""

    async def disturb(request: Request, to_server: Handler) -> Response:
        response = await to_server(request)
        if is_watch(request, plural):
            response.body = change(response.body)
        return response

    return disturb


def late_watch(plural: str = "", seconds: float = 2.0) -> Disturbance:
    return watching(plural, lambda body: late(body, seconds))


def cut_off(is_cut: Callable[[], bool], concerns: Callable[[Request], bool]) -> Disturbance:
    """While it is cut, watches among these requests end, and the requests are refused."""

    async def disturb(request: Request, to_server: Handler) -> Response:
        if not concerns(request):
            return await to_server(request)
        if is_cut():
            return refusal(503, "ServiceUnavailable")
        response = await to_server(request)
        if is_watch(request):
            response.body = until(stream_of(response), is_cut)
        return response

    return disturb


class CutAtCreation:
    """The watch of this resource ends when the first is created, and its history is gone the next three times."""

    def __init__(self, plural: str) -> None:
        self.refused = 0
        self._plural = plural
        self._was_created = False

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        self._was_created = self._was_created or is_creation(request, self._plural)
        if not is_watch(request, self._plural):
            return await to_server(request)
        if self._is_cut():
            self.refused += 1
            return refusal(410, "Expired")
        response = await to_server(request)
        response.body = until(stream_of(response), self._is_cut)
        return response

    def _is_cut(self) -> bool:
        return self._was_created and self.refused < 3
