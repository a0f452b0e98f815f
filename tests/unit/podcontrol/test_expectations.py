from __future__ import annotations

import asyncio

from podlife.podcontrol import Expectations
from podlife.testing import virtual_time

KEY = ("default", "web")


@virtual_time
async def test_time_is_the_event_loops_unless_another_is_given() -> None:
    expectations = Expectations(timeout_seconds=10)
    expectations.expect_creations(KEY, 1)
    await asyncio.sleep(10)
    assert not expectations.is_satisfied(KEY)
    await asyncio.sleep(0.1)
    assert expectations.is_satisfied(KEY)
