"""Namespaces are emptied and let go: nothing is left behind that was let in at the last moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from threading import Semaphore

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authentication import ADMIN, Authenticator
from podlife.apiserver.handler import ApiHandler
from podlife.apiserver.namespace_cleanup import NamespaceCleanup
from podlife.apiserver.namespaces import create_system_namespaces
from podlife.apiserver.storage import Key, SqliteStore
from podlife.apiserver.storage.database import Database
from podlife.apiserver.storage.state import Row
from podlife.clock import SystemClock
from podlife.wire import Peer, Request


async def send(handler: ApiHandler, method: str, path: str, body: object = None) -> int:
    data = json.dumps(body).encode() if body is not None else b""
    answer = await handler(Request(method, path, body=data, peer=Peer("admin", ("system:masters",))))
    return answer.status


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
        cleanup = group.create_task(NamespaceCleanup(handler.registry).run())
        group.create_task(send(handler, "DELETE", "/api/v1/namespaces/brief"))
        await pass_turns()
        body = {"metadata": {"name": "late"}}
        late = group.create_task(send(handler, "POST", "/api/v1/namespaces/brief/configmaps", body))
        await pass_turns()
        groups.release()
        await namespaces.next()
        await pass_turns()
        groups.release(100)
        assert await late == 201
        while store.get(Key("namespaces", "", "brief")) is not None:
            await namespaces.next()
        assert list(store.list("configmaps", "brief")) == []
        cleanup.cancel()
    await store.close()
