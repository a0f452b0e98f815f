"""One key, one worker; collapse; come again; order; the two ways to shut down; getters that give up."""

from __future__ import annotations

import asyncio

import pytest

from podlife.testing import virtual_time
from podlife.workqueue import Queue, ShutDownError


@pytest.fixture
def queue() -> Queue[str]:
    return Queue("pods")


async def settle() -> None:
    """Let everybody who can run do so."""
    for _ in range(5):
        await asyncio.sleep(0)


async def take_all(queue: Queue[str]) -> list[str]:
    taken = []
    while len(queue):
        key = await queue.get()
        taken.append(key)
        queue.done(key)
    return taken


@virtual_time
async def test_a_key_added_many_times_before_it_is_taken_is_worked_on_once(queue: Queue[str]) -> None:
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert len(queue) == 2
    assert await take_all(queue) == ["a", "b"]
    assert queue.metrics.adds == 2


@virtual_time
async def test_a_key_that_is_being_worked_on_is_given_to_nobody_else_and_comes_again_after_done(
    queue: Queue[str],
) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    assert queue.depth == 1
    queue.add("b")
    assert await queue.get() == "b"
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    queue.done("b")
    assert (len(queue), queue.depth, queue.working) == (0, 0, 0)


@virtual_time
async def test_done_for_a_key_that_nobody_works_on_is_refused(queue: Queue[str]) -> None:
    queue.add("a")
    with pytest.raises(ValueError, match="key 'a' is not being processed"):
        queue.done("a")
    assert await take_all(queue) == ["a"]


@virtual_time
async def test_workers_that_wait_are_woken_one_key_each(queue: Queue[str]) -> None:
    async with asyncio.TaskGroup() as group:
        getters = [group.create_task(queue.get()) for _ in range(3)]
        await settle()
        for key in "abc":
            queue.add(key)
    assert [getter.result() for getter in getters] == ["a", "b", "c"]


@virtual_time
async def test_a_getter_cancelled_while_it_waits_leaves_the_key_to_the_next(queue: Queue[str]) -> None:
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())  # noqa: TID251
    await settle()
    first.cancel()
    await settle()
    queue.add("a")
    assert await second == "a"


@virtual_time
async def test_a_getter_cancelled_at_the_moment_it_is_woken_leaves_the_key_to_the_next(
    queue: Queue[str],
) -> None:
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())  # noqa: TID251
    await settle()
    queue.add("a")
    first.cancel()
    assert await second == "a"
    assert first.cancelled()


@virtual_time
async def test_shut_down_takes_no_more_gives_out_what_is_there_and_then_tells_the_workers() -> None:
    queue: Queue[str] = Queue("pods")
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("b")
    await queue.shut_down()
    assert queue.is_shutting_down
    queue.add("c")
    assert await queue.get() == "b"
    queue.done("a")
    assert await queue.get() == "a", "it was asked for again before the end"
    with pytest.raises(ShutDownError, match="pods"):
        await queue.get()


@virtual_time
async def test_shut_down_wakes_all_who_wait(queue: Queue[str]) -> None:
    getters = [asyncio.ensure_future(queue.get()) for _ in range(3)]  # noqa: TID251
    await settle()
    await queue.shut_down()
    results = await asyncio.gather(*getters, return_exceptions=True)
    assert [type(result) for result in results] == [ShutDownError] * 3


@virtual_time
async def test_drain_waits_until_everything_inside_is_done(queue: Queue[str]) -> None:
    for key in "ab":
        queue.add(key)
    assert await queue.get() == "a"
    queue.add("a")
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down(drain=True))
        await settle()
        assert await queue.get() == "b"
        queue.done("b")
        await settle()
        assert not draining.done(), "a is being worked on"
        queue.done("a")
        await settle()
        assert not draining.done(), "a was added again"
        assert await queue.get() == "a"
        queue.done("a")
    assert draining.done()


@virtual_time
async def test_drain_of_an_idle_queue_comes_back_at_once(queue: Queue[str]) -> None:
    async with asyncio.timeout(0.01):
        await queue.shut_down(drain=True)


@virtual_time
async def test_shut_down_without_drain_ends_the_wait_of_one_with_it(queue: Queue[str]) -> None:
    queue.add("a")
    await queue.get()
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down(drain=True))
        await settle()
        assert not draining.done()
        await queue.shut_down()
    queue.done("a")


@virtual_time
async def test_drain_after_a_plain_shut_down_still_waits(queue: Queue[str]) -> None:
    queue.add("a")
    await queue.get()
    await queue.shut_down()
    async with asyncio.TaskGroup() as group:
        draining = group.create_task(queue.shut_down(drain=True))
        await settle()
        assert not draining.done()
        queue.done("a")


@virtual_time
async def test_metrics_tell_how_long_keys_waited_and_were_worked_on(queue: Queue[str]) -> None:
    queue.add("a")
    await asyncio.sleep(0.5)
    queue.add("a")
    await asyncio.sleep(1.5)
    await queue.get()
    queue.add("b")
    await queue.get()
    await asyncio.sleep(30)
    assert queue.unfinished_seconds() == 60
    assert queue.longest_running_seconds() == 30
    queue.done("b")
    await asyncio.sleep(10)
    assert queue.longest_running_seconds() == 40
    queue.done("a")
    assert (queue.unfinished_seconds(), queue.longest_running_seconds()) == (0, 0)
    metrics = queue.metrics
    assert (metrics.adds, metrics.retries) == (2, 0)
    assert (metrics.queue_seconds.total, metrics.queue_seconds.sum) == (2, 2.0)
    assert (metrics.work_seconds.total, metrics.work_seconds.sum) == (2, 70.0)
    assert list(metrics.queue_seconds.cumulative())[-2:] == [(10.0, 2), (float("inf"), 2)]
    assert list(metrics.work_seconds.cumulative())[-2:] == [(10.0, 0), (float("inf"), 2)]
