"""Namespaces are emptied and finalized: nothing created at the last moment is left behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Semaphore
from typing import Any, Self

import pytest

from podlife.api.codec import Object
from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.namespace import NamespaceController, create_system_namespaces
from podlife.apiserver.registry import graceful_deletion
from podlife.apiserver.storage import Key, MemoryStore, SqliteStore
from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.records import Row
from podlife.clock import SystemClock
from podlife.testing import LoopClock, virtual_time
from tests.component.apiserver.requests import send
from tests.kit import objects


async def pass_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_was_let_in_before_its_namespace_was_deleted_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(tmp_path)
    handler = assemble(store, clock=SystemClock(), authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN)
    await send(handler, "POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
    namespaces = store.subscribe("namespaces", since=store.revision)
    # The disk takes its time: a group of commits is written whenever the test says so.
    groups = Semaphore(0)
    insert = Database.insert

    def insert_when_told(database: Database, rows: Sequence[Row]) -> None:
        groups.acquire()
        insert(database, rows)

    monkeypatch.setattr(Database, "insert", insert_when_told)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        cleanup = group.create_task(NamespaceController(handler.registry).run())
        group.create_task(send(handler, "DELETE", "/api/v1/namespaces/brief"))
        await pass_turns()
        body = {"metadata": {"name": "late"}}
        late = group.create_task(send(handler, "POST", "/api/v1/namespaces/brief/configmaps", body))
        await pass_turns()
        groups.release()
        await namespaces.next()
        await pass_turns()
        groups.release(100)
        assert (await late).status == 201
        while store.get(Key("namespaces", "", "brief")) is not None:
            await namespaces.next()
        assert list(store.list("configmaps", "brief")) == []
        cleanup.cancel()
    await store.close()


class Server:
    """An API server in memory under virtual time, with its namespace controller."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.handler = assemble(self.store, clock=LoopClock(), authenticator=Authenticator())
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await create_system_namespaces(self.handler.registry, ADMIN)
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._cleanup = group.create_task(NamespaceController(self.handler.registry).run())
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
        await self.make("configmaps", {"metadata": {"name": "c"}})
        return self

    async def __aexit__(self, *failure: Any) -> None:
        self._cleanup.cancel()
        await self._stack.__aexit__(*failure)
        await self.store.close()

    async def send(self, method: str, path: str, body: object = None, kind: str = "json") -> int:
        return (await send(self.handler, method, path, body, kind)).status

    async def make(self, plural: str, body: object) -> None:
        assert await self.send("POST", f"/api/v1/namespaces/brief/{plural}", body) == 201

    async def delete_namespace(self) -> None:
        """Delete, and let a minute pass."""
        assert await self.send("DELETE", "/api/v1/namespaces/brief") == 200
        await asyncio.sleep(60)

    def names(self, plural: str) -> list[str]:
        return [record.key.name for record in self.store.list(plural, "brief")]

    def is_gone(self) -> bool:
        return self.store.get(Key("namespaces", "", "brief")) is None

    def condition(self, type_: str) -> tuple[str, str, str]:
        record = self.store.get(Key("namespaces", "", "brief"))
        assert record is not None
        conditions = json.loads(record.value)["status"]["conditions"]
        found = next(each for each in conditions if each["type"] == type_)
        return found["status"], found["reason"], found["message"]


HELD = {"finalizers": ["example.com/held"]}


@virtual_time
async def test_the_rest_of_a_namespace_stays_until_its_pods_are_gone() -> None:
    """Upstream's OrderedNamespaceDeletion."""
    async with Server() as server:
        await server.make("pods", objects.pod("p", metadata=HELD))
        await server.delete_namespace()
        assert (server.names("pods"), server.names("configmaps")) == (["p"], ["c"])
        path = "/api/v1/namespaces/brief/pods/p"
        assert await server.send("PATCH", path, {"metadata": {"finalizers": None}}, "merge-patch+json") == 200
        await asyncio.sleep(60)
        assert server.is_gone()


@virtual_time
async def test_the_conditions_of_a_namespace_tell_what_it_waits_for() -> None:
    async with Server() as server:
        await server.make("pods", objects.pod("p", metadata=HELD, nodeName="n1"))
        await server.delete_namespace()
        assert server.condition("NamespaceContentRemaining") == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: pods. has 1 resource instances",
        )
        assert server.condition("NamespaceFinalizersRemaining") == (
            "True",
            "SomeFinalizerRemain",
            "Some finalizers are remaining: example.com/held in 1 resource instances",
        )
        told = "All content successfully deleted, may be waiting on finalization"
        assert server.condition("NamespaceDeletionContentFailure") == ("False", "ContentDeleted", told)


@virtual_time
async def test_a_namespace_with_a_pod_of_endless_grace_does_not_end_the_cleanup_of_others() -> None:
    async with Server() as server:
        await server.make(
            "pods", objects.pod("p", nodeName="n1", terminationGracePeriodSeconds=300_000_000_000)
        )
        await server.send("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        await server.delete_namespace()
        assert await server.send("DELETE", "/api/v1/namespaces/other") == 200
        await asyncio.sleep(60)
        assert server.names("pods") == ["p"]
        assert server.store.get(Key("namespaces", "", "other")) is None


@virtual_time
async def test_an_object_that_cannot_be_deleted_is_told_of_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide = graceful_deletion.before_delete

    def fail_for_c(obj: Object, *arguments: Any, **settings: Any) -> Any:
        if obj["metadata"]["name"] == "c":
            raise OverflowError("date value out of range")
        return decide(obj, *arguments, **settings)

    async with Server() as server:
        await server.make("configmaps", {"metadata": {"name": "d"}})
        with monkeypatch.context() as patched:
            patched.setattr("podlife.apiserver.registry.delete.before_delete", fail_for_c)
            await server.delete_namespace()
        assert server.names("configmaps") == ["c"]
        assert server.condition("NamespaceDeletionContentFailure") == (
            "True",
            "ContentDeletionFailed",
            "Failed to delete all resource types, 1 remaining: configmaps c: date value out of range",
        )
        await asyncio.sleep(60)
        assert server.is_gone()
