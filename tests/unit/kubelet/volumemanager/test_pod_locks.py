from __future__ import annotations

import asyncio
import threading

import pytest

from podlife.kubelet.volumemanager.pod_locks import PodLocks


async def test_who_stops_waiting_keeps_the_turn_until_the_work_has_ended() -> None:
    turns = PodLocks(in_threads=True)
    started, may_end = threading.Event(), threading.Event()
    done: list[str] = []

    def write() -> None:
        started.set()
        may_end.wait(60)
        done.append("written")

    async def take(work: object) -> None:
        async with turns.take("uid") as turn:
            await turn.run(work)  # type: ignore[arg-type]

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(take(write))
        assert await asyncio.to_thread(started.wait, 60)
        writing.cancel()
        removing = tasks.create_task(take(lambda: done.append("removed")))
        while not writing.done():
            await asyncio.sleep(0)
        assert not removing.done()
        assert done == []
        may_end.set()
    assert done == ["written", "removed"]


async def test_a_failure_is_told_and_the_turn_goes_on() -> None:
    turns = PodLocks(in_threads=True)

    def fail() -> None:
        raise OSError("full")

    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            async with turns.take("uid") as turn:
                await turn.run(fail)
    assert turns._busy == {}


async def test_different_pods_do_not_wait_for_each_other() -> None:
    turns = PodLocks(in_threads=False)
    async with turns.take("one"), turns.take("two") as turn:
        assert await turn.run(lambda: 1) == 1
