"""A one-off session executes once: never twice at the same time, and never again with the results of before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podlife.podgc import GcSession, Settings
from podlife.testing import virtual_time
from tests.component.podgc.test_guards import ended
from tests.component.podgc.world import serve


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
