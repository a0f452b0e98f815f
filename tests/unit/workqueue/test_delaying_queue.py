"""Later, and only ever earlier."""

from __future__ import annotations

import asyncio

import pytest

from podlife.testing import virtual_time
from podlife.workqueue import DelayingQueue, ShutDownError


@pytest.fixture
def queue() -> DelayingQueue[str]:
    return DelayingQueue()


async def moments(queue: DelayingQueue[str], count: int) -> list[tuple[str, float]]:
    """The next keys, and at what second each could be taken."""
    taken = []
    for _ in range(count):
        key = await queue.get()
        taken.append((key, round(asyncio.get_running_loop().time(), 3)))
        queue.done(key)
    return taken


@virtual_time
async def test_keys_come_in_the_order_of_their_times_and_those_of_one_time_in_the_order_they_came(
    queue: DelayingQueue[str],
) -> None:
    for key, seconds in (("late", 3), ("x", 2), ("y", 2), ("soon", 1)):
        queue.add_after(key, seconds)
    assert await moments(queue, 4) == [("soon", 1), ("x", 2), ("y", 2), ("late", 3)]


@pytest.mark.parametrize("times", [(50, 5), (5, 50)], ids=["earlier", "later"])
@virtual_time
async def test_a_key_that_waits_moves_earlier_and_never_later(
    queue: DelayingQueue[str], times: tuple[float, float]
) -> None:
    for seconds in times:
        queue.add_after("a", seconds)
    assert await moments(queue, 1) == [("a", 5)]
    await asyncio.sleep(100)
    assert len(queue) == 0


@virtual_time
async def test_a_plain_add_is_at_once_and_leaves_the_later_time_as_it_is(queue: DelayingQueue[str]) -> None:
    queue.add_after("a", 5)
    queue.add("a")
    assert await moments(queue, 2) == [("a", 0), ("a", 5)]


@pytest.mark.parametrize("seconds", [0, -1])
@virtual_time
async def test_no_delay_is_now(queue: DelayingQueue[str], seconds: float) -> None:
    queue.add_after("a", seconds)
    assert len(queue) == 1


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
@virtual_time
async def test_a_time_that_never_comes_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="invalid delay for 'a'"):
        DelayingQueue[str]().add_after("a", seconds)


@virtual_time
async def test_a_key_that_comes_due_while_it_is_worked_on_waits_for_done(queue: DelayingQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    await asyncio.sleep(2)
    assert len(queue) == 0
    queue.done("a")
    assert await moments(queue, 1) == [("a", 2)]


@virtual_time
async def test_what_waits_for_its_time_is_dropped_at_shutdown(queue: DelayingQueue[str]) -> None:
    queue.add_after("a", 1)
    await queue.shut_down(drain=True)
    queue.add_after("b", 1)
    await asyncio.sleep(5)
    assert queue.delayed == 0
    with pytest.raises(ShutDownError):
        await queue.get()


@virtual_time
async def test_retries_counts_what_was_put_off(queue: DelayingQueue[str]) -> None:
    queue.add("a")
    queue.add_after("a", 1)
    queue.add_after("b", 1)
    assert queue.metrics.retries == 2
    await queue.shut_down()
    queue.add_after("c", 1)
    assert queue.metrics.retries == 2
