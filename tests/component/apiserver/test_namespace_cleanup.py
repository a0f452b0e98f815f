"""Namespaces are emptied and let go: nothing is left behind that was let in at the last moment."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authentication import ADMIN, Authenticator
from podlife.apiserver.handler import ApiHandler
from podlife.apiserver.namespace_cleanup import NamespaceCleanup
from podlife.apiserver.namespaces import create_system_namespaces
from podlife.apiserver.storage import Key, SqliteStore
from podlife.clock import SystemClock
from podlife.wire import Peer, Request

ROUNDS = 20


async def send(handler: ApiHandler, method: str, path: str, body: object = None) -> int:
    data = json.dumps(body).encode() if body is not None else b""
    answer = await handler(Request(method, path, body=data, peer=Peer("admin", ("system:masters",))))
    return answer.status


async def test_what_is_created_while_its_namespace_is_deleted_goes_with_it(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    handler = assemble(store, clock=SystemClock(), authenticator=Authenticator())
    await create_system_namespaces(handler.registry, ADMIN)
    namespaces = store.subscribe("namespaces", since=store.revision)

    async def wait_until_gone(name: str) -> None:
        while store.get(Key("namespaces", "", name)) is not None:
            await namespaces.next()

    async def delete_while_creating(name: str) -> None:
        await send(handler, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        async with asyncio.TaskGroup() as group:
            group.create_task(send(handler, "DELETE", f"/api/v1/namespaces/{name}"))
            for number in range(30):
                # One more at every turn of the loop: some fall between the decision and its commit.
                await asyncio.sleep(0)
                body = {"metadata": {"name": f"late-{number}"}}
                group.create_task(send(handler, "POST", f"/api/v1/namespaces/{name}/configmaps", body))

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        cleanup = group.create_task(NamespaceCleanup(handler.registry).run())
        for number in range(ROUNDS):
            await delete_while_creating(f"n{number}")
            await wait_until_gone(f"n{number}")
        cleanup.cancel()
    assert [record.key for record in store.list("configmaps")] == []
    await store.close()
