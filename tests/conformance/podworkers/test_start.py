"""Which pod may start, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podlife.kubelet.podworkers import Stage, StaticNames, is_static
from podlife.kubelet.podworkers.static_names import StaticAdmission
from tests.conformance.podworkers.world import (
    CREATE,
    KILL,
    SYNC,
    UPDATE,
    RunningPod,
    World,
    pod,
    running,
    static,
)

NAME = "pod1_test1"


def alive(*uids: str) -> Callable[[str], bool]:
    return lambda uid: uid in uids


def line(*uids: str) -> StaticNames:
    names = StaticNames()
    for uid in uids:
        names.line_up(NAME, uid)
    return names


@running
async def test_a_pod_that_is_not_static_starts_beside_others_of_its_name(world: World) -> None:
    """PW-60"""
    await world.started(static("1"), pod("2", name="pod1", namespace="test1"))
    await world.told(CREATE, pod("3", name="pod1", namespace="test1", source="api"))
    assert world.steps.of("3") == [("sync", "create")]


@pytest.mark.parametrize(
    ("source", "expected"), [(None, False), ("api", False), ("file", True), ("http", True)]
)
def test_a_pod_is_static_when_it_has_a_source_that_is_not_the_api(source: str | None, expected: bool) -> None:
    """PW-61"""
    assert is_static(pod(source=source)) is expected


def test_a_static_pod_that_is_not_known_may_never_start() -> None:
    """PW-61"""
    assert StaticNames().admit(NAME, "1", alive()) is StaticAdmission.NEVER


def test_a_static_pod_that_is_to_end_may_never_start_and_the_line_stays_as_it_is() -> None:
    """PW-62"""
    names = line("2", "1", "3")
    assert names.admit(NAME, "1", alive("2", "3")) is StaticAdmission.NEVER
    assert names.waiting(NAME) == ("2", "1", "3")


@running
async def test_a_static_pod_whose_name_is_held_asks_again_after_the_backoff(world: World) -> None:
    """PW-63"""
    await world.started(static("1"))
    for chance, delay in ((0.0, 10.0), (1.0, 15.0)):
        world.chance = chance
        await world.told(UPDATE, static("2"))
        assert world.delay("2") == pytest.approx(delay, abs=0.01)
    assert world.steps.of("2") == []


def test_a_static_pod_that_holds_its_name_may_start() -> None:
    """PW-64"""
    names = line("1")
    assert names.admit(NAME, "1", alive("1")) is StaticAdmission.NOW
    assert names.admit(NAME, "1", alive("1")) is StaticAdmission.NOW


def test_a_static_pod_takes_a_name_that_nobody_holds_or_waits_for() -> None:
    """PW-65"""
    names = line()
    assert names.admit(NAME, "1", alive("1")) is StaticAdmission.NOW
    assert names.holder(NAME) == "1"


@pytest.mark.parametrize(("others", "left"), [((), ()), (("2", "3"), ("2", "3"))])
def test_the_first_in_line_starts_and_leaves_it(others: tuple[str, ...], left: tuple[str, ...]) -> None:
    """PW-66"""
    names = line("1", *others)
    assert names.admit(NAME, "1", alive("1", *others)) is StaticAdmission.NOW
    assert names.holder(NAME) == "1"
    assert names.waiting(NAME) == left


def test_one_behind_another_that_lives_waits_and_those_who_ended_leave_the_line() -> None:
    """PW-67"""
    names = line("dead", "2", "1")
    assert names.admit(NAME, "1", alive("1", "2")) is StaticAdmission.LATER
    assert names.waiting(NAME) == ("2", "1")
    assert names.holder(NAME) is None


@pytest.mark.parametrize("before", [("x2", "x2", "x3"), ("terminating", "terminated")])
def test_those_who_are_not_known_or_have_ended_are_passed_over(before: tuple[str, ...]) -> None:
    """PW-68"""
    names = line(*before, "1", "x")
    assert names.admit(NAME, "1", alive("1")) is StaticAdmission.NOW
    assert names.waiting(NAME) == ("x",)


@running
async def test_static_pods_wait_in_the_order_of_their_first_update(world: World) -> None:
    """PW-69"""
    await world.started(static("1"))
    for uid in ("3", "2", "3", "4", "2"):
        world.tell(UPDATE, static(uid))
    await world.settle()
    assert world.workers.static_names.waiting(NAME) == ("3", "2", "4")


@running
async def test_a_pod_that_may_not_start_yet_keeps_its_update_and_does_nothing(world: World) -> None:
    """PW-70"""
    await world.started(static("1"))
    await world.told(CREATE, static("2"))
    state = world.state("2")
    assert state.pending.pod == static("2")
    assert state.active is None
    assert state.started_at is None
    assert not world.workers.is_working("2")


@running
async def test_a_pod_that_may_never_start_has_ended_at_once_without_any_step(world: World) -> None:
    """PW-70"""
    world.tell(CREATE, static("1"))
    await world.told(KILL, static("1"))
    state = world.state("1")
    assert (state.is_terminated, state.is_finished) == (True, True)
    assert state.pending is None
    assert world.steps.calls == []
    assert world.workers.static_names.holder(NAME) is None
    assert not world.workers.is_working("1")


@running
async def test_a_static_pod_that_never_started_but_was_seen_in_the_runtime_is_stopped(world: World) -> None:
    """PW-70"""
    await world.started(static("1"))
    await world.told(CREATE, static("2"))
    world.tell(KILL, running=RunningPod("2"), kill=world.waiting("two"))
    with world.failing("terminating", "2"):
        await world.settle()
        assert world.answers == [], "it may be running"
    await world.told(SYNC, static("2"))
    assert [step for step, _ in world.steps.of("2")] == ["terminating", "terminating", "terminated"]
    assert len(world.answers) == 1
    assert world.workers.static_names.holder(NAME) == "1"


@running
async def test_a_pod_killed_before_its_first_step_counts_as_started_and_is_ended(world: World) -> None:
    """PW-71"""
    world.tell(CREATE, pod())
    await world.told(KILL, pod())
    assert world.state().started_at is not None
    assert world.steps.of("u") == [("terminating", 30), ("terminated", None)]


@running
async def test_a_runtime_only_kill_runs_without_a_start(world: World) -> None:
    """PW-72"""
    world.hold("terminating runtime")
    await world.told(KILL, running=RunningPod("u"))
    assert world.steps.of("u") == [("terminating runtime", None)]
    assert world.state().started_at is None
    assert world.state().stage is Stage.TERMINATING


@running
async def test_containers_are_counted_when_a_pod_is_first_started(world: World) -> None:
    """PW-73"""
    for type_ in (CREATE, UPDATE, SYNC):
        await world.told(type_, pod())
    counted = world.workers.metrics.containers_per_pod
    assert (counted.total, counted.sum) == (1, 1.0)
