"""Clients of a server that is killed under them: they write, they watch, and remember what they were told.

A writer owns its objects, so what must stand after the crash is known exactly: what was acknowledged last, or
that and the one request that was on its way. A watcher remembers every event it was shown.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

NAMESPACE = "default"
PATCH = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
Object = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A resource that is written to: where it is, and how a new object of it looks."""

    path: str
    body: Object
    kind: str
    has_grace: bool = False

    @property
    def head(self) -> Object:
        version = self.path.rpartition("/")[0].removeprefix("/apis/").removeprefix("/api/")
        return {"apiVersion": version, "kind": self.kind}

    def object(self, **metadata: Any) -> Object:
        return {**self.head, "metadata": metadata, **self.body}

    @property
    def items(self) -> str:
        prefix, _, plural = self.path.rpartition("/")
        return f"{prefix}/namespaces/{NAMESPACE}/{plural}"


# A pod that is bound keeps its grace, so a delete without one only marks it.
_POD_SPEC = {
    "nodeName": "somewhere",
    "terminationGracePeriodSeconds": 30,
    "containers": [{"name": "main", "image": "registry.example/app:1"}],
}
KINDS = (
    Kind("/api/v1/pods", {"spec": _POD_SPEC}, "Pod", has_grace=True),
    Kind("/api/v1/configmaps", {"data": {"key": "value"}}, "ConfigMap"),
    Kind("/apis/coordination.k8s.io/v1/leases", {"spec": {"holderIdentity": "me"}}, "Lease"),
    # Of the definition below.
    Kind("/apis/crash.example.com/v1/things", {"spec": {"size": 1}}, "Thing"),
)


def definition(plural: str, group: str = "crash.example.com", *versions: str) -> Object:
    """A definition of a custom resource, the first version stored."""
    size = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": size}}}
    named = [
        {"name": name, "served": True, "storage": number == 0, "schema": schema}
        for number, name in enumerate(versions or ("v1",))
    ]
    names = {"plural": plural, "kind": plural.removesuffix("s").capitalize()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": named},
    }


async def create_definition(session: aiohttp.ClientSession) -> None:
    """Of the custom kind above; returns when it is served."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    async with session.post(definitions, json=definition("things")) as answer:
        await _told(answer, 201)
    async with asyncio.timeout(60):
        while True:
            async with session.get(KINDS[-1].path) as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.05)


@dataclass(frozen=True)
class Change:
    """What one acknowledged request left behind: the object at a revision, or nothing."""

    uid: str
    revision: int
    is_gone: bool = False
    is_marked: bool = False
    count: str = ""


@dataclass
class Writer:
    """Changes objects of its own, one request after the other, until the server is gone."""

    number: int
    chance: random.Random
    # By kind and name. What is not there was never acknowledged.
    acknowledged: dict[tuple[str, str], Change] = field(default_factory=dict)
    in_flight: tuple[str, str] | None = None
    promises: int = 0
    _count: int = 0

    async def write(self, session: aiohttp.ClientSession, told: asyncio.Queue[int]) -> None:
        """Raises what the client raises when its server is killed."""
        while True:
            kind = self.chance.choice(KINDS)
            name = f"w{self.number}-{self.chance.randrange(4)}"
            self.in_flight = (kind.path, name)
            last = self.acknowledged.get(self.in_flight)
            change = await self._change(session, kind, name, last)
            self.acknowledged[self.in_flight] = change
            self.in_flight = None
            self.promises += 1
            told.put_nowait(self.promises)

    async def _change(
        self, session: aiohttp.ClientSession, kind: Kind, name: str, last: Change | None
    ) -> Change:
        self._count += 1
        if last is None or last.is_gone:
            return await self._create(session, kind, name)
        if last.is_marked or self.chance.random() < 0.2:
            return await self._delete(session, kind, name, last)
        return await self._modify(session, kind, name)

    async def _create(self, session: aiohttp.ClientSession, kind: Kind, name: str) -> Change:
        body = kind.object(name=name, annotations={"count": str(self._count)})
        async with session.post(kind.items, json=body) as answer:
            return change_of(await _told(answer, 201))

    async def _modify(self, session: aiohttp.ClientSession, kind: Kind, name: str) -> Change:
        path = f"{kind.items}/{name}"
        annotations = {"count": str(self._count)}
        if kind.has_grace and self.chance.random() < 0.5:
            patch = {"metadata": {"annotations": annotations}, "status": {"phase": "Running"}}
            async with session.patch(f"{path}/status", json=patch, headers=PATCH) as answer:
                obj = await _told(answer, 200)
        elif self.chance.random() < 0.5:
            obj = await self._apply(session, kind, name, annotations)
        else:
            async with session.get(path) as answer:
                obj = await _told(answer, 200)
            obj["metadata"].setdefault("annotations", {}).update(annotations)
            async with session.put(path, json=obj) as answer:
                obj = await _told(answer, 200)
        return change_of(obj)

    async def _apply(
        self, session: aiohttp.ClientSession, kind: Kind, name: str, annotations: dict[str, str]
    ) -> Object:
        body = kind.head | {"metadata": {"name": name, "annotations": annotations}}
        query = {"fieldManager": f"writer-{self.number}", "force": "true"}
        async with session.patch(f"{kind.items}/{name}", json=body, params=query, headers=APPLY) as answer:
            obj = await _told(answer, 200)
        managers = {(each["manager"], each["operation"]) for each in obj["metadata"]["managedFields"]}
        assert (query["fieldManager"], "Apply") in managers, managers
        return obj

    async def _delete(self, session: aiohttp.ClientSession, kind: Kind, name: str, last: Change) -> Change:
        is_graceful = kind.has_grace and not last.is_marked and self.chance.random() < 0.5
        query = {} if is_graceful or not kind.has_grace else {"gracePeriodSeconds": "0"}
        async with session.delete(f"{kind.items}/{name}", params=query) as answer:
            obj = await _told(answer, 200)
        if is_graceful:
            return change_of(obj)
        return Change(last.uid, last.revision, is_gone=True)


async def _told(answer: aiohttp.ClientResponse, code: int) -> Object:
    body = await answer.read()
    assert answer.status == code, body
    obj: Object = msgspec.json.decode(body)
    return obj


def change_of(obj: Object) -> Change:
    meta = obj["metadata"]
    return Change(
        meta["uid"],
        int(meta["resourceVersion"]),
        is_marked="deletionTimestamp" in meta,
        count=meta.get("annotations", {}).get("count", ""),
    )


@dataclass(frozen=True)
class Seen:
    """One event of a watch."""

    type: str
    name: str
    revision: int
    uid: str


@dataclass
class Watcher:
    """Follows one path, over however many lives of the server."""

    path: str
    since: int
    events: list[Seen] = field(default_factory=list)

    @property
    def revision(self) -> int:
        return max(self.since, self.events[-1].revision) if self.events else self.since

    async def follow(self, session: aiohttp.ClientSession, connected: asyncio.Queue[str]) -> None:
        """Until the server is gone. What came of an event that was cut off does not count."""
        query = {"watch": "1", "resourceVersion": str(self.revision)}
        async with session.get(self.path, params=query) as answer:
            assert answer.status == 200, await answer.read()
            connected.put_nowait(self.path)
            async for line in answer.content:
                if line.endswith(b"\n"):
                    self.events.append(_seen(line))


async def read_until(session: aiohttp.ClientSession, path: str, since: int, last: int) -> list[Seen]:
    """Every event of a watch from `since`, up to the one at revision `last`."""
    events: list[Seen] = []
    query = {"watch": "1", "resourceVersion": str(since)}
    async with asyncio.timeout(120), session.get(path, params=query) as answer:
        assert answer.status == 200, await answer.read()
        async for line in answer.content:
            events.append(_seen(line))
            if events[-1].revision >= last:
                break
    return events


def _seen(line: bytes) -> Seen:
    event = msgspec.json.decode(line)
    meta = event["object"]["metadata"]
    assert event["type"] != "ERROR", event
    return Seen(event["type"], meta["name"], int(meta["resourceVersion"]), meta["uid"])


async def list_all(session: aiohttp.ClientSession, path: str) -> tuple[int, dict[str, Object]]:
    """The revision of a list, and its objects by name."""
    async with session.get(path) as answer:
        body = await _told(answer, 200)
    items = {item["metadata"]["name"]: item for item in body["items"]}
    return int(body["metadata"]["resourceVersion"]), items
