"""What other parts ask about a UID."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.kubelet.podworkers import KillOptions
from tests.conformance.podworkers.world import CREATE, KILL, UPDATE, World, pod, running, static

# For a UID that is not known, before and after the first comparison; then in sync, asked to end, terminating,
# terminated, finished.
ANSWERS = [
    pytest.param("is_known_terminated", False, False, "...xx", id="PW-170"),
    pytest.param("could_have_running_containers", True, False, "xxx..", id="PW-171"),
    pytest.param("is_finished", False, True, "....x", id="PW-172"),
    pytest.param("is_termination_requested", False, False, ".xxxx", id="PW-173"),
    pytest.param("should_containers_be_terminating", False, True, "..xxx", id="PW-174"),
    pytest.param("should_runtime_be_removed", False, True, "...xx", id="PW-175"),
    pytest.param("should_content_be_removed", False, True, "...xx", id="PW-176"),
]


@pytest.mark.parametrize(("question", "before", "after", "known"), ANSWERS)
@running
async def test_the_answer_through_the_life_of_a_deleted_pod(
    question: str, before: bool, after: bool, known: str, world: World
) -> None:
    ask: Any = getattr(world.workers, question)
    assert ask("u") is before
    answers = []
    sync, terminating, terminated = (world.hold(step) for step in ("sync", "terminating", "terminated"))
    world.steps.ignores_cancellation.add(("sync", "u"))
    await world.told(CREATE, pod())
    answers.append(ask("u"))
    await world.told(UPDATE, pod(deletion=5))
    answers.append(ask("u"))
    for gate in (sync, terminating, terminated):
        await world.open(gate)
        answers.append(ask("u"))
    assert answers == [each == "x" for each in known]
    assert world.workers.sync_known_pods(()) == {}
    assert ask("u") is after


@running
async def test_the_content_of_a_pod_that_is_neither_deleted_nor_evicted_stays(world: World) -> None:
    """PW-176"""
    await world.started(pod())
    await world.told(KILL, pod())
    assert not world.workers.should_content_be_removed("u")


@running
async def test_the_content_of_an_evicted_pod_can_go_at_once(world: World) -> None:
    """PW-177"""
    await world.started(pod())
    gate = world.hold("terminating")
    await world.told(KILL, pod(), kill=KillOptions(evict=True))
    assert world.workers.could_have_running_containers("u")
    assert world.workers.should_content_be_removed("u")
    await world.open(gate)


@running
async def test_the_static_pod_behind_a_mirror_is_terminating_until_it_has_stopped(world: World) -> None:
    """PW-178"""
    name = "pod1_test1"
    ask = world.workers.is_static_pod_terminating
    assert not ask(name)
    await world.started(static("1"), pod("2", name="other", namespace="test1"))
    assert not ask(name)
    gates = [world.hold(step, "1") for step in ("terminating", "terminated")]
    world.tell(KILL, static("1"))
    await world.told(KILL, pod("2", name="other", namespace="test1"))
    assert ask(name)
    assert not ask("other_test1")
    for gate in gates:
        await world.open(gate)
        assert not ask(name)
