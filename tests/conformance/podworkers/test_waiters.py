"""Whoever waits for a kill is answered, once, in every case."""

from __future__ import annotations

import pytest

from podlife.kubelet.pod import RunningPod
from podlife.kubelet.podworkers import KillOptions, KillOutcome, Stage
from podlife.testing import virtual_time
from tests.conformance.podworkers.world import (
    CREATE,
    KILL,
    SYNC,
    UPDATE,
    World,
    pod,
    running,
    static,
)

STOPPED, NOT_KILLED, CLOSED = KillOutcome.STOPPED, KillOutcome.NOT_KILLED, KillOutcome.CLOSED


@running
async def test_kill_options_without_a_kill_are_discarded_and_answered_at_once(world: World) -> None:
    """PW-30"""
    for type_ in (CREATE, UPDATE, SYNC):
        world.tell(type_, pod(), kill=world.waiting(type_.value, grace_seconds=3))
    assert world.answers == [(what, NOT_KILLED) for what in ("create", "update", "sync")]
    assert world.pending().kill is None
    assert world.state().stage is Stage.SYNC


@running
async def test_those_who_come_while_a_pod_ends_are_kept_and_the_grace_is_always_written(world: World) -> None:
    """PW-31"""
    await world.started(pod())
    gate = world.hold("terminating")
    await world.told(KILL, pod(), kill=world.waiting("first"))
    world.tell(UPDATE, pod())
    assert world.pending().kill == KillOptions(grace_seconds=30)
    world.tell(UPDATE, pod(), kill=world.waiting("second", grace_seconds=0))
    assert len(world.state().waiters) == 2
    assert world.pending().kill == KillOptions(grace_seconds=1)
    assert world.answers == []
    await world.open(gate)
    assert world.answers == [("first", STOPPED), ("second", STOPPED)]


@running
async def test_a_pod_that_has_stopped_answers_at_once_and_ignores_what_the_runtime_says(world: World) -> None:
    """PW-32"""
    await world.started(pod())
    gate = world.hold("terminated")
    await world.told(KILL, pod())
    world.tell(KILL, running=RunningPod("u"), kill=world.waiting("runtime"))
    assert world.state().pending is None
    world.tell(KILL, pod(), kill=world.waiting("late", grace_seconds=3))
    assert world.pending().kill is None
    assert world.answers == [("runtime", STOPPED), ("late", STOPPED)]
    await world.open(gate)


@running
async def test_all_are_answered_when_the_pod_has_stopped_and_not_before(world: World) -> None:
    """PW-33"""
    await world.started(pod())
    with world.failing("terminating"):
        world.tell(KILL, pod(), kill=world.waiting("a", status_override=lambda status: None))
        await world.told(KILL, pod(), kill=world.waiting("b"))
        assert world.answers == []
    gate = world.hold("terminated")
    await world.told(SYNC, pod())
    assert world.answers == [("a", STOPPED), ("b", STOPPED)]
    assert world.state().waiters == ()
    assert world.state().status_override is None
    await world.open(gate)


@running
async def test_only_the_last_status_override_is_used_and_on_every_try(world: World) -> None:
    """PW-34"""

    def first(status: object) -> None: ...

    def last(status: object) -> None: ...

    await world.started(pod())
    with world.failing("terminating"):
        world.tell(KILL, pod(), kill=KillOptions(status_override=first))
        world.tell(KILL, pod(), kill=KillOptions(status_override=last))
        await world.told(KILL, pod())
        await world.told(SYNC, pod())
    assert [seen[2] for seen in world.steps.seen] == [last, last]


@running
async def test_a_pod_that_never_starts_answers(world: World) -> None:
    """PW-70"""
    await world.started(static("1"))
    await world.told(CREATE, static("2"))
    await world.told(KILL, static("2"), kill=world.waiting("two"))
    assert world.state("2").is_finished
    assert world.answers == [("two", STOPPED)]
    assert world.steps.of("2") == []


@running
async def test_an_orphan_that_never_started_answers_when_it_is_forgotten(world: World) -> None:
    """PW-154"""
    world.workers.held["u"] = None
    await world.told(KILL, pod(), kill=world.waiting("orphan"))
    assert world.workers.sync_known_pods(()) == {}
    assert world.answers == [("orphan", STOPPED)]
    world.workers.release("u")
    await world.settle()
    assert world.steps.calls == []


@running
async def test_a_runtime_only_pod_answers_when_it_has_stopped(world: World) -> None:
    with world.failing("terminating runtime"):
        await world.told(KILL, running=RunningPod("u"), kill=world.waiting("one"))
        assert world.answers == []
    await world.told(KILL, running=RunningPod("u"), kill=world.waiting("two"))
    assert world.answers == [("one", STOPPED), ("two", STOPPED)]


@running
async def test_a_create_that_is_only_a_wish_answers_when_the_pod_has_stopped(world: World) -> None:
    await world.started(pod())
    gate = world.hold("terminating")
    await world.told(KILL, pod())
    world.tell(CREATE, pod(), kill=world.waiting("early"))
    assert world.answers == []
    await world.open(gate)
    world.tell(CREATE, pod(), kill=world.waiting("late"))
    assert world.answers == [("early", STOPPED), ("late", STOPPED)]


@virtual_time
async def test_workers_that_end_tell_those_who_wait_that_nothing_is_known(world: World) -> None:
    async with world:
        await world.started(pod())
        world.hold("terminating")
        await world.told(KILL, pod(), kill=world.waiting("during"))
    assert world.answers == [("during", CLOSED)]
    world.tell(KILL, pod(), kill=world.waiting("after"))
    assert world.answers[1:] == [("after", CLOSED)]
    assert world.state().waiters == ()
    assert world.workers.is_termination_requested("u"), "what is known stays known"


@running
async def test_one_who_waits_and_fails_keeps_nobody_from_being_answered(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(outcome: KillOutcome) -> None:
        raise RuntimeError("not my day")

    await world.started(pod())
    world.tell(KILL, pod(), kill=KillOptions(broken))
    await world.told(KILL, pod(), kill=world.waiting("other"))
    assert world.answers == [("other", STOPPED)]
    assert world.state().is_finished
    assert "not my day" in caplog.text
