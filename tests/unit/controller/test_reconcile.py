"""What becomes of a key after each outcome of its reconcile, and what is left when a controller is stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from operator import methodcaller
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.api.views import Metadata, MetadataOnly
from podlife.controller import Again, Controller, Enqueue
from podlife.controller.reconcile import show_key
from podlife.errors import ConflictError, TerminalError
from podlife.informer.indexes import Key
from podlife.testing import virtual_time
from podlife.workqueue import ExponentialLimiter, Queue, RateLimitedQueue

Reconcile = Callable[[str], Awaitable[Again | None]]


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def running(reconcile: Reconcile, **options: Any) -> AsyncIterator[Controller[str]]:
    queue: RateLimitedQueue[str] = RateLimitedQueue("pods", limiter=ExponentialLimiter(1, 100))
    controller = Controller("collector", queue, reconcile, **options)
    task = asyncio.get_running_loop().create_task(controller.run())
    try:
        yield controller
        assert not task.done()
    finally:
        await cancel_and_wait(task)
    assert task.cancelled()


@virtual_time
async def test_a_key_that_is_done_does_not_come_again() -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> None:
        seen.append(key)

    async with running(reconcile) as controller:
        controller.queue.add("a")
        await asyncio.sleep(1000)
    assert seen == ["a"]
    assert controller.metrics.results == {"success": 1}


@virtual_time
async def test_again_comes_again_after_its_time_and_forgets_earlier_failures() -> None:
    seen: list[float] = []

    async def reconcile(key: str) -> Again | None:
        seen.append(now())
        if len(seen) == 1:
            raise ConflictError("somebody else was faster")
        return Again(seconds=30) if len(seen) == 2 else None

    async with running(reconcile) as controller:
        controller.queue.add("a")
        await asyncio.sleep(5)
        assert controller.queue.retries("a") == 0
        await asyncio.sleep(1000)
    assert seen == [0, 1, 31]
    assert controller.metrics.results == {"error": 1, "requeue_after": 1, "success": 1}


@virtual_time
async def test_a_failure_comes_again_with_growing_distance_and_success_forgets_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[float] = []

    async def reconcile(key: str) -> None:
        seen.append(now())
        if len(seen) < 5:
            raise ConflictError("somebody else was faster")

    async with running(reconcile) as controller:
        controller.queue.add("a")
        await asyncio.sleep(1000)
    assert seen == [0, 1, 3, 7, 15]
    assert controller.queue.retries("a") == 0
    assert caplog.records[0].message == (
        "collector: reconcile of a failed, retrying: somebody else was faster"
    )
    assert caplog.records[0].exc_info is None, "what is raised on purpose says it in a line"


@virtual_time
async def test_a_terminal_error_is_told_and_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[float] = []

    async def reconcile(key: str) -> None:
        seen.append(now())
        raise TerminalError("its spec makes no sense")

    async with running(reconcile) as controller:
        controller.queue.add("a")
        await asyncio.sleep(1000)
        controller.queue.add("a")
        await asyncio.sleep(1)
    assert seen == [0, 1000], "a change brings it back"
    assert controller.metrics.results == {"terminal_error": 2}
    assert (
        caplog.records[0].message == "collector: a failed permanently, not retrying: its spec makes no sense"
    )


@virtual_time
async def test_a_bug_in_one_key_is_told_with_its_trace_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> None:
        if key == "bad":
            raise ZeroDivisionError("a bug")
        seen.append(key)

    async with running(reconcile) as controller:
        for key in ("bad", "a", "b"):
            controller.queue.add(key)
        await asyncio.sleep(0.5)
    assert seen == ["a", "b"]
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.exc_info is not None


@virtual_time
async def test_workers_work_at_once_but_never_on_the_same_key() -> None:
    at_work: set[str] = set()
    most = 0

    async def reconcile(key: str) -> None:
        nonlocal most
        assert key not in at_work
        at_work.add(key)
        most = max(most, len(at_work))
        controller.queue.add(key) if now() < 50 else None
        await asyncio.sleep(1)
        at_work.remove(key)

    async with running(reconcile, workers=3) as controller:
        for key in "abcdef":
            controller.queue.add(key)
        await asyncio.sleep(10)
        assert controller.metrics.active_workers == 3
        await asyncio.sleep(100)
    assert most == 3
    assert set(controller.metrics.results) == {"success"}
    assert controller.metrics.seconds.total == controller.metrics.results["success"]


@virtual_time
async def test_what_is_being_worked_on_when_the_controller_is_cancelled_is_in_the_queue_again() -> None:
    async def reconcile(key: str) -> None:
        await asyncio.sleep(1000)

    async with running(reconcile) as controller:
        controller.queue.add("a")
        await asyncio.sleep(1)
        assert len(controller.queue) == 0
    assert await controller.queue.get() == "a"


@virtual_time
async def test_a_controller_ends_when_its_queue_is_drained() -> None:
    seen: list[str] = []

    async def reconcile(key: str) -> None:
        await asyncio.sleep(1)
        seen.append(key)

    queue: RateLimitedQueue[str] = RateLimitedQueue()
    async with asyncio.TaskGroup() as group:
        group.create_task(Controller("collector", queue, reconcile, workers=2).run())
        for key in "abc":
            queue.add(key)
        await asyncio.sleep(0)
        await queue.shut_down(drain=True)
    assert seen == ["a", "b", "c"]


@virtual_time
async def test_a_controller_with_time_to_stop_finishes_what_it_is_at_and_begins_nothing_more() -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def reconcile(key: str) -> None:
        begun.append(key)
        await asyncio.sleep(2)
        ended.append(key)

    async with running(reconcile, stop_seconds=3) as controller:
        controller.queue.add("a")
        controller.queue.add("b")
        await asyncio.sleep(1)
    assert (begun, ended, now()) == (["a"], ["a"], 2)


@virtual_time
async def test_what_takes_longer_than_there_is_time_to_stop_is_cut_off() -> None:
    is_cut_off = False

    async def reconcile(key: str) -> None:
        nonlocal is_cut_off
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            is_cut_off = True
            raise

    async with running(reconcile, stop_seconds=3) as controller:
        controller.queue.add("a")
        await asyncio.sleep(1)
    assert (is_cut_off, now()) == (True, 4)


@virtual_time
async def test_others_have_their_turn_between_keys_that_wait_for_nothing() -> None:
    """A worker that finds the next key at once and a reconcile that sends nothing would keep the loop to themselves: no
    watch would be read and no lease renewed until the queue is empty."""
    done: list[str] = []
    seen_by_others: list[int] = []

    async def reconcile(key: str) -> None:
        done.append(key)

    async with running(reconcile) as controller:
        for number in range(100):
            controller.queue.add(str(number))
        while len(done) < 100:
            await asyncio.sleep(0)
            seen_by_others.append(len(done))
    assert len(seen_by_others) >= 100


@virtual_time
async def test_key_that_is_always_due_again_at_once_stops_nobody() -> None:
    passes = 0

    async def reconcile(key: str) -> Again:
        nonlocal passes
        passes += 1
        assert passes < 1000, "nobody else has had a turn"
        return Again(0)

    async with running(reconcile) as controller:
        controller.queue.add("hot")
        for _ in range(10):
            await asyncio.sleep(0)
    assert passes <= 20


def test_a_key_is_shown_as_people_write_it() -> None:
    assert [show_key(key) for key in (("default", "ci"), ("", "n1"), "0f-uid")] == [
        "default/ci",
        "n1",
        "0f-uid",
    ]


# An object's event enqueues the object, and what was kept of one that is gone is forgotten first


KEY = ("default", "web")


def web(uid: str = "u-1") -> MetadataOnly:
    namespace, name = KEY
    return MetadataOnly(Metadata(namespace=namespace, name=name, uid=uid))


@virtual_time
async def test_every_event_enqueues_the_object() -> None:
    for tell in (
        methodcaller("on_add", web()),
        methodcaller("on_update", web(), web()),
        methodcaller("on_delete", web()),
    ):
        queue: Queue[Key] = Queue()
        tell(Enqueue(queue))
        assert await queue.get() == KEY


@virtual_time
async def test_what_was_kept_is_forgotten_when_the_object_is_gone_and_not_before() -> None:
    forgotten: list[Key] = []
    handler = Enqueue(Queue[Key](), forgotten.append)
    handler.on_add(web())
    handler.on_update(web(), web())
    assert forgotten == []
    handler.on_delete(web())
    assert forgotten == [KEY]


@virtual_time
async def test_an_object_made_again_with_nothing_seen_in_between_is_another_one() -> None:
    forgotten: list[Key] = []
    queue: Queue[Key] = Queue()
    Enqueue(queue, forgotten.append).on_update(web("u-1"), web("u-2"))
    assert forgotten == [KEY]
    assert await queue.get() == KEY
