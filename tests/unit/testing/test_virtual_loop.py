"""An event loop in which waiting takes no time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from podlife.testing import VirtualTimeLoop, virtual_time
from podlife.testing.virtual_loop import EndlessWaitError


def run(coroutine: Coroutine[Any, Any, None], **settings: float) -> None:
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(**settings)) as runner:
        runner.run(coroutine)


def test_a_day_of_waiting_takes_no_time_and_is_a_day() -> None:
    async def wait() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(86_400)
        assert loop.time() == 86_400

    began = time.perf_counter()
    run(wait())
    assert time.perf_counter() - began < 3600


def test_a_wait_for_what_never_comes_ends_with_a_line_that_says_so() -> None:
    async def wait() -> None:
        async def beat() -> None:
            while True:
                await asyncio.sleep(3600)

        beating = asyncio.get_running_loop().create_task(beat())
        try:
            await asyncio.Event().wait()
        finally:
            beating.cancel()

    with pytest.raises(EndlessWaitError, match="1 days of virtual time have passed: a task waits for"):
        run(wait(), most_seconds=86_400)


def test_what_goes_on_without_time_passing_ends_with_a_line_that_says_so() -> None:
    async def spin() -> None:
        await asyncio.sleep(7)
        while True:
            await asyncio.sleep(0)

    with pytest.raises(EndlessWaitError, match="at 7 s of virtual time tasks keep running"):
        run(spin())


@virtual_time
async def test_idle_comes_when_all_that_can_happen_now_has_happened_and_before_time_passes() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    seen: list[str] = []

    async def work() -> None:
        for number in range(20):
            await asyncio.sleep(0)
            seen.append(str(number))
        await asyncio.sleep(1)
        seen.append("later")

    working = loop.create_task(work())
    await loop.idle()
    assert (seen[-1], loop.time()) == ("19", 0.0)
    await working
    assert (seen[-1], loop.time()) == ("later", 1.0)


@virtual_time
async def test_a_set_of_tasks_is_gone_through_in_the_order_in_which_they_were_made() -> None:
    async def work(number: int) -> int:
        await asyncio.sleep(1)
        return number

    loop = asyncio.get_running_loop()
    done, _ = await asyncio.wait({loop.create_task(work(number)) for number in range(50)})
    assert [task.result() for task in done] == list(range(50))


@virtual_time
async def test_a_thread_is_waited_for() -> None:
    async with asyncio.TaskGroup() as group:
        timer = group.create_task(asyncio.sleep(3600))
        await asyncio.to_thread(time.sleep, 0.05)
        assert not timer.done()
    assert asyncio.get_running_loop().time() == 3600


def test_a_task_that_is_left_behind_is_told_by_its_name() -> None:
    @virtual_time
    async def leaves_one() -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(5), name="forgotten")

    with pytest.raises(AssertionError, match=r"tasks left behind: \['forgotten'\]"):
        leaves_one()
