"""Static pods with one full name, from the first to the last: one scenario, in the order it happens."""

from __future__ import annotations

import pytest

from podlife.kubelet.podworkers import KnownPod, Stage
from tests.conformance.podworkers.world import CREATE, KILL, UPDATE, World, pod, running, static

NAME = "pod1_test1"
RUNNING = KnownPod(Stage.SYNC, False, True, True)
ENDED = KnownPod(Stage.TERMINATED, False, True, True)


def normal() -> KnownPod:
    return KnownPod(Stage.SYNC, False, True, False)


async def scene(world: World) -> None:
    """1 and 2 run, 3 and 4 wait."""
    world.tell(UPDATE, pod("1", name="pod1", namespace="test1"))
    await world.told(UPDATE, static("2"))
    for uid in ("3", "4"):
        world.tell(UPDATE, static(uid))
    await world.settle()


async def tell(world: World, *uids: str, kill: bool = False) -> None:
    for uid in uids:
        world.tell(KILL if kill else UPDATE, static(uid))
    await world.settle()


def line(world: World) -> tuple[str | None, tuple[str, ...]]:
    names = world.workers.static_names
    return names.holder(NAME), tuple(names.waiting(NAME))


def due(world: World) -> set[str]:
    return {uid for uid in "123456789" if world.workers.retries.due_at(uid) is not None}


async def second_scene(world: World) -> None:
    """4 runs, 2 and 3 have ended, 3 is forgotten."""
    await scene(world)
    await tell(world, "3", kill=True)
    await tell(world, "2", kill=True)
    await tell(world, "4")
    world.workers.sync_known_pods({"1", "2", "4"})


async def third_scene(world: World) -> None:
    """5 was killed and is held; 6 waits behind it."""
    await second_scene(world)
    await tell(world, "5")
    world.workers.held["5"] = None
    await tell(world, "5", kill=True)
    await tell(world, "6")


async def fourth_scene(world: World) -> None:
    """6 runs, 5 has ended."""
    await third_scene(world)
    await tell(world, "4", kill=True)
    await tell(world, "6")
    world.workers.release("5")
    await world.settle()


@running
async def test_a_static_and_a_normal_pod_of_one_name_both_run(world: World) -> None:
    """PW-130, PW-131"""
    await scene(world)
    assert [world.steps.of(uid) for uid in "12"] == [[("sync", "update")]] * 2
    assert [world.steps.of(uid) for uid in "34"] == [[], []]
    assert line(world) == ("2", ("3", "4"))
    assert due(world) == {"1", "2", "3", "4"}


@running
async def test_an_update_for_one_that_waits_leaves_it_waiting(world: World) -> None:
    """PW-132"""
    await scene(world)
    for uid in "1234":
        world.workers.retries.forget(uid)
    await tell(world, "3")
    assert line(world) == ("2", ("3", "4"))
    assert due(world) == {"3"}


@running
async def test_the_first_that_lives_starts_when_the_name_is_free_and_it_asks_again(world: World) -> None:
    """PW-133, PW-134, PW-135, PW-136, PW-137"""
    await scene(world)
    await tell(world, "3", kill=True)
    assert (world.state("3").is_terminated, world.state("3").is_finished) == (True, True)
    assert world.steps.of("3") == [], "it ended while it waited"
    assert "3" not in due(world)
    assert line(world) == ("2", ("3", "4"))
    await tell(world, "2", kill=True)
    assert world.state("2").is_terminated
    assert line(world) == (None, ("3", "4"))
    assert world.steps.of("4") == [], "nothing starts by itself"
    await tell(world, "4")
    assert world.steps.of("4") == [("sync", "update")]
    assert line(world) == ("4", ())
    never_started = KnownPod(Stage.TERMINATED, False, False, False)
    expected = {"1": normal(), "2": ENDED, "3": never_started, "4": RUNNING}
    assert world.workers.sync_known_pods({"1", "2", "3", "4"}) == expected
    assert world.state("3").is_finished
    del expected["3"]
    assert world.workers.sync_known_pods({"1", "2", "4"}) == expected
    assert world.workers.state("3") is None


@running
async def test_one_that_is_killed_and_held_is_passed_over_and_ends_without_running(world: World) -> None:
    """PW-138, PW-139, PW-140"""
    await third_scene(world)
    assert world.state("5").is_termination_requested
    assert not world.state("5").is_terminated
    assert line(world) == ("4", ("5", "6"))
    await tell(world, "4", kill=True)
    await tell(world, "6")
    assert line(world) == ("6", ())
    assert world.steps.of("6") == [("sync", "update")]
    assert not world.state("5").is_terminated
    world.workers.release("5")
    await world.settle()
    assert world.state("5").is_terminated
    assert world.steps.of("5") == []
    assert line(world) == ("6", ())


@running
async def test_one_behind_another_that_lives_does_not_start_until_that_is_killed(world: World) -> None:
    """PW-141, PW-142, PW-143"""
    await fourth_scene(world)
    await tell(world, "7", "8", "9")
    await tell(world, "6", kill=True)
    await world.told(CREATE, static("6"))
    assert world.state("6").is_restart_requested
    await tell(world, "8")
    assert line(world) == (None, ("7", "8", "9"))
    assert [world.steps.of(uid) for uid in "789"] == [[], [], []]
    await tell(world, "7", kill=True)
    await tell(world, "8")
    assert world.steps.of("8") == [("sync", "update")]
    orphan = KnownPod(Stage.TERMINATING, True, True, False)
    assert world.workers.sync_known_pods({"8"}) == {"1": orphan, "8": RUNNING}
    assert line(world) == ("8", ())


@running
async def test_nothing_is_remembered_of_names_that_nobody_has_any_more(world: World) -> None:
    await fourth_scene(world)
    await tell(world, "7", "8")
    world.workers.sync_known_pods(())
    await world.settle()
    assert world.workers.sync_known_pods(()) == {}
    assert len(world.workers.static_names) == 0
    assert line(world) == (None, ())
    assert due(world) == set()


@pytest.mark.parametrize("wanted", ["6", ""])
@running
async def test_one_that_is_wished_back_is_forgotten_so_that_it_can_be_created(
    wanted: str, world: World
) -> None:
    """PW-151"""
    await fourth_scene(world)
    await tell(world, "6", kill=True)
    world.tell(CREATE, static("6"))
    assert "6" not in world.workers.sync_known_pods({"1", wanted})
    await world.told(CREATE, static("6"))
    assert world.steps.of("6")[-1] == ("sync", "create")
