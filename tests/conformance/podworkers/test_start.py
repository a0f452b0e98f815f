"""Which pod may start, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podlife.kubelet.pod import RunningPod
from podlife.kubelet.podworkers import Stage, StaticNames, is_static
from podlife.kubelet.podworkers.static_names import StaticAdmission
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

NAME = "pod1_test1"


def alive(*uids: str) -> Callable[[str], bool]:
    return lambda uid: uid in uids


def line(*uids: str) -> StaticNames:
    names = StaticNames()
    for uid in uids:
        names.enqueue(NAME, uid)
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


NOW, LATER, NEVER = StaticAdmission


@pytest.mark.parametrize(
    ("waiting", "others", "admission", "left"),
    [
        pytest.param((), (), NOW, (), id="PW-65: nobody holds the name or waits for it"),
        pytest.param(("1",), (), NOW, (), id="PW-66: first and alone in line"),
        pytest.param(("1", "2", "3"), ("2", "3"), NOW, ("2", "3"), id="PW-66: first in line leaves it"),
        pytest.param(
            ("dead", "2", "1"), ("2",), LATER, ("2", "1"), id="PW-67: one behind another that lives waits"
        ),
        pytest.param(
            ("x2", "x2", "x3", "1", "x"), (), NOW, ("x",), id="PW-68: those not known are passed over"
        ),
        pytest.param(
            ("terminating", "terminated", "1", "x"),
            (),
            NOW,
            ("x",),
            id="PW-68: those who ended are passed over",
        ),
    ],
)
def test_whether_a_static_pod_may_start(
    waiting: tuple[str, ...], others: tuple[str, ...], admission: StaticAdmission, left: tuple[str, ...]
) -> None:
    """PW-64: one that holds its name may start whenever it asks."""
    names = line(*waiting)
    assert names.admit(NAME, "1", alive("1", *others)) is admission
    assert names.holder(NAME) == ("1" if admission is NOW else None)
    assert names.waiting(NAME) == left
    if admission is NOW:
        assert names.admit(NAME, "1", alive("1", *others)) is NOW


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param((), id="PW-61: not known"),
        pytest.param(("2", "1", "3"), id="PW-62: to end; the line stays as it is"),
    ],
)
def test_a_static_pod_that_is_not_alive_may_never_start(waiting: tuple[str, ...]) -> None:
    names = line(*waiting)
    assert names.admit(NAME, "1", alive("2", "3")) is NEVER
    assert names.waiting(NAME) == waiting


@running
async def test_a_static_pod_whose_name_is_held_asks_again_after_the_backoff(world: World) -> None:
    """PW-63"""
    await world.started(static("1"))
    for chance, delay in ((0.0, 10.0), (1.0, 15.0)):
        world.chance = chance
        await world.told(UPDATE, static("2"))
        assert world.delay("2") == pytest.approx(delay, abs=0.01)
    assert world.steps.of("2") == []


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
    assert world.pending("2").pod == static("2")
    state = world.state("2")
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
