"""An API server behind a loopback socket, and what a test does to it and sees of it.

Everything goes over HTTP, as any client would send it. Two things do not: the clock, which the test holds in its
hand, and `plant`, which puts into the store what no request could (what an older server left behind).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from podlife.api.codec import Object, decode_object, parse_time
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator, TokenFile, UserInfo, format_tokens
from podlife.apiserver.http import HttpServer
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.storage import Delete, Key, MemoryStore, Put, Record, SqliteStore, Store
from podlife.clock import ManualClock
from tests.kit import objects

NODE = "node-a"
TOKENS = {
    "admin": ("admin-token", ADMIN),
    NODE: ("node-a-token", UserInfo(f"system:node:{NODE}", NODE, ("system:nodes",))),
}
JSON = "application/json"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    headers: Mapping[str, str]

    @property
    def meta(self) -> Object:
        return self.body["metadata"]

    @property
    def message(self) -> str:
        return self.body["message"]

    @property
    def cause(self) -> Object:
        [cause] = self.body["details"]["causes"]
        return cause


@dataclass(frozen=True)
class Seen:
    """One event, as a watcher saw it."""

    type: str
    obj: Object

    @property
    def meta(self) -> Object:
        return self.obj["metadata"]

    @property
    def phase(self) -> str:
        return self.obj["status"]["phase"]


class World:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        tokens: Mapping[str, str],
        *,
        clock: ManualClock,
        store: Store,
        namespace: str = "default",
    ) -> None:
        self._session = session
        self._tokens = tokens
        self.clock = clock
        self._store = store
        self.namespace = namespace
        self._markers = 0

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        who: str = "admin",
        format_: str = JSON,
    ) -> Answer:
        data = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self._tokens[who]}", "Accept": JSON}
        if data:
            headers["Content-Type"] = format_
        async with self._session.request(method, path, data=data, headers=headers) as response:
            return Answer(response.status, await response.json(), response.headers)

    def path(self, resource: str, name: str = "", subresource: str = "") -> str:
        root = "/apis/policy/v1" if resource == "poddisruptionbudgets" else "/api/v1"
        parts = [root, "namespaces", self.namespace, resource]
        return "/".join(part for part in (*parts, name, subresource) if part)

    async def create(self, resource: str, body: Object) -> Object:
        answer = await self.request("POST", self.path(resource), body)
        assert answer.code == 201, answer.body
        return answer.body

    async def get(self, name: str, resource: str = "pods") -> Object:
        answer = await self.request("GET", self.path(resource, name))
        assert answer.code == 200, answer.body
        return answer.body

    async def is_gone(self, name: str, resource: str = "pods") -> bool:
        answer = await self.request("GET", self.path(resource, name))
        assert answer.code in (200, 404), answer.body
        return answer.code == 404

    async def is_going(self, name: str = "p") -> bool:
        return "deletionTimestamp" in (await self.get(name))["metadata"]

    async def patch(
        self, name: str, change: Object, *, resource: str = "pods", sub: str = "", who: str = "admin"
    ) -> Answer:
        return await self.request("PATCH", self.path(resource, name, sub), change, who=who, format_=MERGE)

    async def delete(
        self,
        name: str,
        *,
        resource: str = "pods",
        query: str = "",
        body: Any = None,
        who: str = "admin",
        **options: Any,
    ) -> Answer:
        """A delete with these options; with none, one without a body."""
        if options:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
        return await self.request("DELETE", self.path(resource, name) + query, body, who=who)

    async def pod(
        self,
        name: str = "p",
        *,
        node: str = NODE,
        phase: str = "",
        is_ready: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Object:
        """A pod on a node (unless that is empty), as its agent would report it."""
        labelled = {"labels": {"app": "a"}, **(metadata or {})}
        bound: Object = {"nodeName": node} if node else {}
        created = await self.create("pods", objects.pod(name, metadata=labelled, **bound, **spec))
        if not phase and is_ready is None:
            return created
        return await self.report(name, phase=phase or "Running", is_ready=is_ready)

    async def report(self, name: str, *, phase: str, is_ready: bool | None = None) -> Object:
        answer = await self.patch(name, status_of(phase, is_ready), sub="status")
        assert answer.code == 200, answer.body
        return answer.body

    async def evict(
        self, name: str = "p", *, query: str = "", version: str = "policy/v1", named: str = "", **options: Any
    ) -> Answer:
        body: Object = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": named or name}}
        if options:
            body["deleteOptions"] = options
        return await self.request("POST", self.path("pods", name, "eviction") + query, body)

    async def budget(
        self,
        name: str = "b",
        *,
        allowed: int = 0,
        current: int = 0,
        desired: int = 0,
        selector: Object | None = None,
        policy: str | None = None,
        status: Mapping[str, Any] | None = None,
    ) -> Object:
        """A disruption budget, in the state that its controller would have written."""
        spec: Object = {"selector": {"matchLabels": {"app": "a"}} if selector is None else selector}
        if policy:
            spec["unhealthyPodEvictionPolicy"] = policy
        created = await self.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec})
        state = {
            "disruptionsAllowed": allowed,
            "currentHealthy": current,
            "desiredHealthy": desired,
            "expectedPods": max(current, 1),
            "observedGeneration": created["metadata"]["generation"],
            **(status or {}),
        }
        answer = await self.patch(name, {"status": state}, resource="poddisruptionbudgets", sub="status")
        assert answer.code == 200, answer.body
        return answer.body

    async def get_budget(self, name: str = "b") -> Object:
        return await self.get(name, "poddisruptionbudgets")

    async def events(self, since: Object, *, resource: str = "pods", name: str = "p") -> list[Seen]:
        """What a watcher of the object has seen after this version of it. A marker that is made now says where
        to stop, so nothing waits for time to pass."""
        self._markers += 1
        marker = f"marker-{self._markers}"
        await self.create(resource, {"metadata": {"name": marker}, **MARKERS[resource]})
        seen: list[Seen] = []
        version = since["metadata"]["resourceVersion"]
        path = f"{self.path(resource)}?watch=true&resourceVersion={version}&timeoutSeconds=30"
        headers = {"Authorization": f"Bearer {self._tokens['admin']}"}
        async with self._session.get(path, headers=headers) as response:
            async for line in response.content:
                event = json.loads(line)
                if event["object"]["metadata"]["name"] == marker:
                    return seen
                if event["object"]["metadata"]["name"] == name:
                    seen.append(Seen(event["type"], event["object"]))
        raise AssertionError("the watch has ended before the marker")

    async def marks(self, since: Object, *, name: str = "p") -> list[Seen]:
        """The events of a pod that is being deleted."""
        return [seen for seen in await self.events(since, name=name) if "deletionTimestamp" in seen.meta]

    def seconds_until(self, time: str) -> float:
        return (parse_time(time) - self.clock.now()).total_seconds()

    async def plant(self, name: str, *, resource: str = "pods", **parts: Mapping[str, Any]) -> Object:
        """Change the stored object behind the server's back: `metadata={...}` sets, None takes away."""
        record, obj = self._stored(name, resource)
        for part, values in parts.items():
            merged = {**obj.get(part, {}), **values}
            obj[part] = {field: value for field, value in merged.items() if value is not None}
        await self._store.commit(Put(record.key, encoder(obj), expected=record.revision))
        return await self.get(name, resource)

    async def uproot(self, name: str) -> None:
        """Take the pod out of the store behind the server's back."""
        record, obj = self._stored(name, "pods")
        await self._store.commit(Delete(record.key, encoder(obj), expected=record.revision))

    def _stored(self, name: str, resource: str) -> tuple[Record, Object]:
        record = self._store.get(self._key(name, resource))
        assert record is not None
        return record, decode_object(record.value)

    def _key(self, name: str, resource: str) -> Key:
        return Key(STORED.get(resource, resource), self.namespace, name)

    async def meet(
        self,
        requests: Sequence[Coroutine[Any, Any, Answer]],
        change: Callable[[], Awaitable[object]] | None = None,
        *,
        name: str = "p",
        resource: str = "pods",
    ) -> list[Answer]:
        """Let the requests arrive, in their order, while another writer holds the object and then changes it.

        That none of them is answered before the writer is done shows that they wait for it; what they answer
        then shows that they decide on what it left, not on what they found."""
        async with asyncio.TaskGroup() as group, self._store.locked(self._key(name, resource)):
            tasks = []
            for request in requests:
                tasks.append(group.create_task(request))
                # These answers come after the request, which was sent before them, has got to the lock.
                for _ in range(2):
                    await self.get(name, resource)
            assert not any(task.done() for task in tasks)
            if change is not None:
                await change()
        return [task.result() for task in tasks]


STORED = {"poddisruptionbudgets": "poddisruptionbudgets.policy"}
MARKERS: dict[str, Object] = {
    "pods": {"spec": objects.pod()["spec"]},
    "configmaps": {},
    "poddisruptionbudgets": {"spec": {"selector": {"matchLabels": {"app": "marker"}}}},
}


def status_of(phase: str, is_ready: bool | None = None) -> Object:
    status: Object = {"phase": phase}
    if is_ready is not None:
        status["conditions"] = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    return {"status": status}


@asynccontextmanager
async def serve(kind: str, folder: Path) -> AsyncIterator[World]:
    """Our API server over a store of that kind (`memory` or `sqlite`), for as long as the block lasts."""
    tokens = folder / "tokens.csv"
    tokens.write_text(format_tokens(TOKENS.values()))
    store = await SqliteStore.open(folder / "store") if kind == "sqlite" else MemoryStore()
    clock = ManualClock()
    handler = assemble(store, clock=clock, authenticator=Authenticator(TokenFile(tokens)))
    await create_system_namespaces(handler.registry, ADMIN)
    face = HttpServer(handler, tls=None)
    await face.start("127.0.0.1", 0)
    try:
        # Many requests at once are the point of some tests: the client must not queue them.
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{face.port}", connector=connector) as session:
            yield World(session, {who: token for who, (token, _) in TOKENS.items()}, clock=clock, store=store)
    finally:
        await face.stop()
        await store.close()
