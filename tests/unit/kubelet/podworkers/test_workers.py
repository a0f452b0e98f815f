"""How the decisions are carried out: turns, tasks, times, and mistakes of those whose code is called."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from typing import Any

import pytest

from podlife.kubelet.podworkers import (
    BackoffError,
    Delays,
    KillOptions,
    KillOutcome,
    PodUpdate,
    PodWorkers,
    UpdateType,
)
from podlife.kubelet.podworkers.delays import delay_after
from podlife.testing import virtual_time
from tests.conformance.podworkers.world import CREATE, KILL, SYNC, Recorder, World, pod


@virtual_time
async def test_what_was_told_before_the_workers_run_is_done_when_they_do() -> None:
    world = World()
    await world.told(CREATE, pod())
    assert world.steps.calls == []
    async with world:
        await world.settle()
        assert world.steps.of("u") == [("sync", "create")]


@virtual_time
async def test_others_on_the_loop_get_their_turn_between_many_steps() -> None:
    async with World("plain") as world:
        for number in range(1000):
            world.tell(CREATE, pod(f"{number}"))
        turns = 0
        while len(world.steps.calls) < 1000:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 10


@virtual_time
async def test_only_steps_that_are_waited_for_have_tasks_and_each_is_named_for_its_pod() -> None:
    async with World("plain") as world:
        world.hold("sync", "held")
        await world.started(pod("held"), *(pod(f"{number}") for number in range(20)))
        names = [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("pod worker")]
        assert names == ["pod worker held"]


@virtual_time
async def test_nothing_that_a_step_sets_in_its_context_reaches_another_step() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    seen = []
    async with World("awaited") as world:

        def note(call: object) -> None:
            seen.append(variable.get())
            variable.set("set")

        world.steps.on_call = note
        for uid in ("a", "b"):
            world.tell(CREATE, pod(uid))
        await world.settle()
        await world.told(SYNC, pod("a"))
    assert seen == ["unset"] * 3


@virtual_time
async def test_the_time_is_that_which_is_given() -> None:
    world = World()
    now = 100.0
    world.workers._seconds = lambda: now
    async with world:
        world.tell(CREATE, pod())
        assert world.state().synced_at == 100.0
        await world.settle()
        assert world.workers.retries.due_at("u") == 120.0


@virtual_time
async def test_a_step_that_answers_nonsense_is_a_step_that_succeeded() -> None:
    async with World("plain") as world:
        world.steps.sync_pod = lambda *arguments: True  # type: ignore[method-assign]
        world.steps.sync_terminating_pod = lambda *arguments: "done"  # type: ignore[method-assign]
        await world.told(CREATE, pod())
        await world.told(KILL, pod())
        assert world.state().is_finished


@virtual_time
async def test_a_recorder_that_fails_ends_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with World("plain") as world:

        def event(regarding: Any, type_: str, reason: str, message: str) -> None:
            raise RuntimeError("no events today")

        world.recorder.event = event  # type: ignore[method-assign]
        world.cache.errors["u"] = RuntimeError("no runtime")
        await world.told(CREATE, pod())
        del world.cache.errors["u"]
        await world.told(SYNC, pod())
        assert world.steps.of("u") == [("sync", "sync")]
    assert "no events today" in caplog.text


@virtual_time
async def test_a_status_wait_that_is_cut_short_does_not_make_the_next_step_wait_for_a_newer_one() -> None:
    async with World() as world:
        await world.started(pod())
        ended = world.workers._workers["u"].stepped_at
        world.cache.gates["u"] = asyncio.Event()
        world.tell(SYNC, pod())
        await asyncio.sleep(5)
        await world.told(KILL, pod())
        assert world.cache.asked[-1] == ("u", ended)
        world.cache.gates["u"].set()
        await world.settle()
        assert world.state().is_finished


@virtual_time
async def test_whoever_is_told_may_ask_and_tell_at_once() -> None:
    async with World("plain") as world:
        for uid in ("a", "b"):
            world.workers.held[uid] = None

        def again(outcome: KillOutcome) -> None:
            world.workers.sync_known_pods(())
            world.tell(CREATE, pod("c"))

        world.tell(KILL, pod("a"), kill=KillOptions(again))
        world.tell(KILL, pod("b"), kill=KillOptions(again))
        assert set(world.workers.sync_known_pods(())) <= {"c"}
        await world.settle()
        assert world.steps.of("c") == [("sync", "create")]


@virtual_time
async def test_the_end_of_the_workers_waits_for_a_step_that_cleans_up() -> None:
    cleaned = []

    class Steps:
        async def sync_pod(self, *arguments: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(3)
                cleaned.append(True)

    workers: Any = PodWorkers(Steps(), World().cache, Recorder())  # type: ignore[arg-type] # one step is enough
    run = asyncio.get_running_loop().create_task(workers.run())
    workers.update_pod(PodUpdate(UpdateType.CREATE, pod()))
    await asyncio.sleep(1)
    run.cancel()
    await asyncio.wait([run])
    assert run.cancelled()
    assert cleaned == [True]


@virtual_time
async def test_a_mistake_of_the_workers_own_ends_them_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    world = World()
    run = asyncio.get_running_loop().create_task(world.workers.run())
    world.workers._chance = lambda: 1 / 0
    world.tell(CREATE, pod(), kill=None)
    await asyncio.wait([run])
    error = run.exception()
    assert isinstance(error, ExceptionGroup)
    assert error.subgroup(ZeroDivisionError) is not None


def test_an_error_that_was_raised_from_itself_is_looked_at_once() -> None:
    error, other = BackoffError("back-off", 7.0), RuntimeError("no")
    error.__cause__, other.__cause__ = other, error
    assert delay_after(Delays(), other, 4.0, is_transition=False, random=0.0) == 3.0
