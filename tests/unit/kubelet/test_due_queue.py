"""Waiting for pods that are due: once a second at most, and not at all while nothing is."""

from __future__ import annotations

import asyncio

from podlife.kubelet.due_queue import DueQueue
from podlife.kubelet.monotonic import MonotonicSeconds
from podlife.testing import virtual_time


@virtual_time
async def test_what_is_due_comes_within_a_second() -> None:
    loop = asyncio.get_running_loop()
    table = DueQueue()
    table.put("later", loop.time() + 60)
    table.put("soon", loop.time() + 5)
    assert await table.wait() == ["soon"]
    assert 5 <= loop.time() < 6.1
    assert await table.wait() == ["later"]
    assert 60 <= loop.time() < 61.1


@virtual_time
async def test_something_earlier_that_comes_while_it_waits_is_not_missed() -> None:
    loop = asyncio.get_running_loop()
    table = DueQueue()
    table.put("late", loop.time() + 500)
    waiting = loop.create_task(table.wait())
    await asyncio.sleep(30)
    table.put("early", loop.time() + 10)
    assert await waiting == ["early"]
    assert 40 <= loop.time() < 41.1


@virtual_time
async def test_an_empty_one_waits_for_what_comes() -> None:
    loop = asyncio.get_running_loop()
    table = DueQueue()
    waiting = loop.create_task(table.wait())
    await asyncio.sleep(10_000)
    assert not waiting.done()
    table.put("first", loop.time())
    assert await waiting == ["first"]


@virtual_time
async def test_no_two_moments_are_the_same_though_time_stands_still() -> None:
    seconds = MonotonicSeconds()
    found = [seconds() for _ in range(1000)]
    assert found == sorted(set(found))
    await asyncio.sleep(1)
    assert seconds() == asyncio.get_running_loop().time()
