"""A call to the runtime is seen to its end, even if its caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from podlife.aio import finish_despite_cancel
from podlife.testing import virtual_time


@virtual_time
async def test_a_cancelled_caller_waits_for_the_call() -> None:
    ended = asyncio.Event()

    async def call() -> None:
        await asyncio.sleep(5)
        ended.set()

    caller = asyncio.get_running_loop().create_task(finish_despite_cancel(call(), name="call"))
    await asyncio.sleep(1)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()


@virtual_time
async def test_a_failed_call_raises_its_error_and_a_cancelled_caller_is_cancelled_all_the_same() -> None:
    async def fail() -> None:
        await asyncio.sleep(5)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await finish_despite_cancel(fail(), name="call")
    caller = asyncio.get_running_loop().create_task(finish_despite_cancel(fail(), name="call"))
    await asyncio.sleep(1)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
