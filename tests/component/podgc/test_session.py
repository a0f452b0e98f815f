"""A one-off session executes once: never twice at the same time, and never again with the results of before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podlife.podgc import GcSession, Settings
from tests.component.podgc.test_guards import ended
from tests.component.podgc.world import serve
from tests.virtual_time import virtual_time


@virtual_time
async def test_a_second_execute_is_refused_while_the_first_runs_and_after_it(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await ended(world, 3)
        session = GcSession(world.client, Settings(threshold=1), clock=world.clock)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(session.execute())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="only once"):
                await session.execute()
        assert first.result().is_complete
        with pytest.raises(RuntimeError, match="only once"):
            await session.execute()
        assert await world.left() == ["p002"]
