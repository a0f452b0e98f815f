"""The scenarios of volumes under virtual time end as with kube-controller-manager (`tests/volumes/golden.json`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podlife.client import Client
from podlife.controller import ControlPlane
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect, start
from tests.volumes.golden import golden
from tests.volumes.runs import CONTROLLERS
from tests.volumes.scenarios import SCENARIOS
from tests.volumes.stage import Stage
from tests.workloads.runs import at_work

SETTLE_SECONDS = 40.0


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    handler = await start()
    plane = ControlPlane(connect(handler), clock=LoopClock())
    for make in CONTROLLERS:
        plane.add(make(plane))
    async with at_work(plane.run):
        yield connect(handler)


@pytest.mark.parametrize("name", SCENARIOS)
@virtual_time
async def test_it_ends_as_with_kube_controller_manager(name: str) -> None:
    async with cluster() as client:
        stage = Stage(client, name)
        await stage.open()
        marks = iter(golden(name))
        async for _ in SCENARIOS[name](stage):
            await asyncio.sleep(SETTLE_SECONDS)
            assert await stage.seen() == next(marks)
        assert not [*marks]
