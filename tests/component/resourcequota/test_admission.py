"""A create and what it is charged are one commit, on a store with a disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import SqliteStore
from podlife.client import CONFIG_MAPS, Client
from podlife.clock import SystemClock
from podlife.errors import AlreadyExistsError, ApiError, ForbiddenError
from podlife.resourcequota.controller import RESOURCE_QUOTAS
from tests.kit.embedded import connect


async def _outcome(client: Client, name: str) -> type[ApiError] | None:
    try:
        await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
    except ApiError as error:
        return type(error)
    return None


async def test_of_many_creates_at_once_as_many_succeed_as_the_quota_allows(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    try:
        handler = assemble(store, clock=SystemClock(), authenticator=Authenticator())
        await create_system_namespaces(handler.registry, ADMIN)
        client = connect(handler)
        for name in ("one", "two"):
            hard = {"hard": {"configmaps": "7", "count/configmaps": "9"}}
            await client.create(RESOURCE_QUOTAS, {"metadata": {"name": name}, "spec": hard}, "default")
            status = {"status": hard | {"used": dict.fromkeys(hard["hard"], "0")}}
            await client.patch(RESOURCE_QUOTAS, name, status, "default", subresource="status")
        # Every name twice: an object that exists is not charged.
        names = [f"map-{number // 2}" for number in range(40)]
        outcomes = await asyncio.gather(*(_outcome(client, name) for name in names))
        assert outcomes.count(None) == 7
        assert set(outcomes) <= {None, ForbiddenError, AlreadyExistsError}
        assert len((await client.list(CONFIG_MAPS, "default")).items) == 7
        for name in ("one", "two"):
            quota = await client.get(RESOURCE_QUOTAS, name, "default")
            assert quota["status"]["used"] == {"configmaps": "7", "count/configmaps": "7"}
    finally:
        await store.close()
