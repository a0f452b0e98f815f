"""A collector at work on the embedded server under virtual time, and a way to the server that a test can spoil."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from podlife.aio import cancel_and_wait
from podlife.api.codec import Object
from podlife.apiserver.endpoints import ApiHandler
from podlife.client import CONFIG_MAPS, SECRETS, DeleteOptions, Ref
from podlife.controller import ControlPlane
from podlife.ownergc import IGNORED, OwnerGarbageCollector
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.kit.embedded import connect, refusal, start

HELD = "test.podlife.io/held"


def to(owner: Object, *, block: bool | None = None, **other: Any) -> Object:
    """A reference to a ConfigMap, unless it says otherwise."""
    metadata = owner["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
    return {**reference, **({} if block is None else {"blockOwnerDeletion": block}), **other}


def is_watch(request: Request) -> bool:
    return "watch" in request.query


class Line:
    """The collector's way to the server. `refuse` answers instead of the server, `cut` ends what is open, `hidden` are
    resources that discovery leaves out, `delay` holds back what watches bring."""

    def __init__(self) -> None:
        self.refuse: Callable[[Request], Response | None] = lambda request: None
        self.delay: Callable[[Request], float] = lambda request: 0.0
        self.hidden: set[str] = set()
        self.is_down = False
        self.sent: Counter[str] = Counter()
        self.writes: list[str] = []
        self._open: set[asyncio.Event] = set()

    def cut(self) -> None:
        for stream in self._open:
            stream.set()

    async def __call__(self, request: Request, to_server: Handler) -> Response:
        if self.is_down:
            return refusal(503, "ServiceUnavailable")
        self.sent[f"{request.method} {request.path}"] += 1
        if (answer := self.refuse(request)) is not None:
            return answer
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path}")
        response = await to_server(request)
        if request.path in ("/api", "/apis"):
            return self._hide(response)
        if is_watch(request) and response.status == 200:
            response.body = self._pass_on(request, response.body)
        return response

    def _hide(self, response: Response) -> Response:
        assert isinstance(response.body, bytes)
        document = json.loads(response.body)
        for group in document["items"]:
            for version in group["versions"]:
                version["resources"] = [
                    each for each in version["resources"] if each["resource"] not in self.hidden
                ]
        return Response(200, json.dumps(document).encode(), response.content_type)

    async def _pass_on(self, request: Request, body: Any) -> AsyncIterator[bytes]:
        end = asyncio.Event()
        self._open.add(end)
        ended = asyncio.get_running_loop().create_task(end.wait())
        pieces = aiter(body)
        try:
            while True:
                piece = asyncio.get_running_loop().create_task(anext(pieces))
                await asyncio.wait((piece, ended), return_when=asyncio.FIRST_COMPLETED)
                if end.is_set():
                    await cancel_and_wait(piece)
                    return
                await asyncio.sleep(self.delay(request))
                yield await piece
        except StopAsyncIteration:
            return
        finally:
            self._open.discard(end)
            ended.cancel()
            if not piece.done():
                await cancel_and_wait(piece)
            await body.aclose()


class World:
    def __init__(self, server: ApiHandler) -> None:
        self.server = server
        self.client = connect(server)
        self.line = Line()

    @asynccontextmanager
    async def collecting(
        self, *, ignored: frozenset[tuple[str, str]] = IGNORED
    ) -> AsyncIterator[OwnerGarbageCollector]:
        """A collector at work; it is killed at the end of the block."""
        client = connect(self.server, self.line)
        plane = ControlPlane(client, clock=LoopClock())
        collector = OwnerGarbageCollector(plane, ignored=ignored)
        plane.add(collector)
        running = asyncio.get_running_loop().create_task(plane.run())
        try:
            await asyncio.sleep(0.1)
            yield collector
            if running.done():
                running.result()
        finally:
            await cancel_and_wait(running)
            await client.close()

    async def make(
        self, name: str, *owners: Object, ref: Ref = CONFIG_MAPS, namespace: str = "default", **metadata: Any
    ) -> Object:
        obj = {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}
        return await self.client.create(ref, obj, namespace)

    async def delete(self, name: str, policy: str = "Background", *, ref: Ref = CONFIG_MAPS) -> None:
        await self.client.delete(ref, name, "default", options=DeleteOptions(propagation_policy=policy))

    async def left(self, ref: Ref = CONFIG_MAPS) -> dict[str, Object]:
        """By name."""
        page = await self.client.list(ref, "default")
        return {obj["metadata"]["name"]: obj["metadata"] for obj in page.items}

    async def names(self) -> set[str]:
        """Of all ConfigMaps and Secrets."""
        return {*(await self.left()), *(await self.left(SECRETS))}


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    made = World(await start())
    try:
        yield made
    finally:
        await made.client.close()


def in_world(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a world of its own (`its`), under virtual time."""

    @functools.wraps(test)
    async def run(**parameters: Any) -> None:
        async with world() as its:
            await test(its=its, **parameters)

    wrapped = virtual_time(run)
    own = [each for each in inspect.signature(test).parameters.values() if each.name != "its"]
    wrapped.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return wrapped


def on(pattern: str, code: int, reason: str = "") -> Callable[[Request], Response | None]:
    """Refuses what fits: method, path and the parameters, in one text."""

    def refuse(request: Request) -> Response | None:
        text = f"{request.method} {request.path}?{request.query.raw}"
        return refusal(code, reason) if re.search(pattern, text) else None

    return refuse
