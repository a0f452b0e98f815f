"""The endpoint of a node before the embedded API server, which says who may do what: one for the tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.component.kubelet_server.kit import World, running
from tests.kit.embedded import connect, start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("node")
    async with connect(await start()) as client, running(folder, client) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def web(world: World) -> World:
    """With a pod whose container runs."""
    await world.pods.run("web", "sleep 100")
    return world
