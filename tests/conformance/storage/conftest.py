from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from podlife.apiserver.storage import HistoryLimits, MemoryStore, SqliteStore, Store

OpenStore = Callable[[HistoryLimits], Awaitable[Store]]


@pytest.fixture(params=["memory", "sqlite"])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenStore]:
    """Makes stores with limits of the test's choice; every test runs once for each kind of store."""
    opened: list[Store] = []

    async def open_one(limits: HistoryLimits) -> Store:
        if request.param == "memory":
            store: Store = MemoryStore(limits)
        else:
            store = await SqliteStore.open(tmp_path / str(len(opened)), limits=limits)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store(HistoryLimits())
