"""A page on a real socket, fed by an API server in the test's own process, and a browser's part of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse, ClientSession, CookieJar

from podlife.client import NODES, PODS, Client
from podlife.diagnosis import acting_rules
from podlife.testing import LoopClock
from podlife.ui.access import Access
from podlife.ui.cluster_api import ClusterApi, ClusterSettings
from podlife.ui.feed import Feed, LiveFeed
from podlife.ui.lives import Lives
from podlife.ui.observer import Observer
from podlife.ui.server import PageServer
from tests.kit import embedded

Object = dict[str, Any]
# For any wait, on a machine that may be busy.
SECONDS = 120.0


def a_pod(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


async def with_pods(client: Client, *names: str) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await client.create(NODES, node)
    for name in names:
        await client.create(PODS, a_pod(name, nodeName="n1"), "default")


@dataclass
class Event:
    event: str
    data: Any
    id: str | None = None


@dataclass
class Browser:
    """Keeps what a page would keep of the stream."""

    session: ClientSession
    url: str
    access: Access
    events: list[Event] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return self.url.removesuffix(self.access.prefix)

    async def open(self) -> None:
        address = f"{self.origin}/?token={self.access.token}"
        async with self.session.get(address, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, f"{self.access.prefix}/")

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        async with self.session.get(
            self.url + path, headers=_named(headers), allow_redirects=False
        ) as answer:
            return answer.status, await _body(answer)

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        named = {"Origin": self.origin} | _named(headers)
        async with self.session.post(self.url + path, json=body, headers=named) as answer:
            return answer.status, await _body(answer)

    @asynccontextmanager
    async def stream(self, last_id: str = "") -> AsyncIterator[AsyncIterator[Event]]:
        headers = {"Last-Event-ID": last_id} if last_id else {}
        async with (
            asyncio.timeout(SECONDS),
            self.session.get(f"{self.url}/api/stream", headers=headers) as answer,
        ):
            assert (answer.status, answer.content_type) == (200, "text/event-stream")
            yield _events(answer)

    async def picture(self) -> tuple[dict[str, Object], str]:
        """All lives by name, and the ID to go on from."""
        lives: dict[str, Object] = {}
        async with self.stream() as events:
            async for each in events:
                if each.event == "lives":
                    lives |= {life["name"]: life for life in each.data}
                if each.event == "synced":
                    assert each.id is not None
                    return lives, each.id
        raise AssertionError("the stream ended before the picture was complete")


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def _body(answer: ClientResponse) -> Any:
    return await (answer.json() if answer.content_type == "application/json" else answer.text())


async def _events(answer: ClientResponse) -> AsyncIterator[Event]:
    found: dict[str, str] = {}
    buffer = b""
    async for piece in answer.content.iter_any():
        buffer += piece
        while (end := buffer.find(b"\n")) >= 0:
            line, buffer = buffer[:end].decode(), buffer[end + 1 :]
            if not line:
                yield Event(found["event"], json.loads(found["data"]), found.get("id"))
                found = {}
            else:
                name, _, value = line.partition(": ")
                found[name] = value


@asynccontextmanager
async def served(
    client: Client, *, static: Path, settings: ClusterSettings | None = None, allows_actions: bool = False
) -> AsyncIterator[Browser]:
    """A page of the cluster behind the client, and a browser that has not opened it yet."""
    clock = LoopClock()
    lives = Lives(acting_rules())
    observer = Observer(client, clock, lives, fallback="default")
    feed = LiveFeed(lives, observer, clock, {"cluster": "c", "actions": allows_actions, "policy": ""})
    cluster = ClusterApi(client, clock, settings or ClusterSettings(), lives)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(observer.run()), group.create_task(feed.run())]
        try:
            async with browsing(feed, cluster, static=static, allows_actions=allows_actions) as browser:
                yield browser
        finally:
            await cluster.stop()
            for task in tasks:
                task.cancel()


@asynccontextmanager
async def browsing(
    feed: Feed, cluster: ClusterApi | None, *, static: Path, allows_actions: bool = False
) -> AsyncIterator[Browser]:
    (static / "index.html").write_text("<!doctype html><title>page</title>")
    (static / "main.js").write_text("// code")
    access = Access("127.0.0.1", 0)
    server = PageServer(feed, lambda: access, cluster, allows_actions=allows_actions, static=static)
    async with server.serving("127.0.0.1", (0,), None) as port:
        access = Access("127.0.0.1", port)
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            yield Browser(session, f"http://127.0.0.1:{port}{access.prefix}", access)


@asynccontextmanager
async def opened(static: Path, *pods: str, **settings: Any) -> AsyncIterator[tuple[Browser, Client]]:
    """A page that was opened, of a cluster with these pods."""
    async with embedded.connect(await embedded.start()) as client:
        await with_pods(client, *pods)
        async with served(client, static=static, **settings) as browser:
            await browser.open()
            yield browser, client
