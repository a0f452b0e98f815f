"""Containers: created, started once, stopped with grace, removed; and what is known of them at each step."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerState,
    EventKind,
    InvalidContainerError,
    NotFoundInRuntimeError,
    StartContainerError,
)

from .machines import World


async def test_a_created_container_has_not_started(world: World) -> None:
    sandbox_id = await world.sandbox()
    config = world.machine.runs_for_ever()
    status = await world.status(await world.created(config))
    assert (status.sandbox_id, status.pod_uid, status.config) == (sandbox_id, "uid-1", config)
    assert (status.state, status.started_at, status.exit_code) == (ContainerState.CREATED, None, None)
    assert status.log_path == world.folder / "logs" / config.log_path


async def test_the_same_attempt_at_a_container_twice_is_a_conflict_and_the_next_attempt_is_not(
    world: World,
) -> None:
    config = world.machine.runs_for_ever()
    first = await world.created(config)
    with pytest.raises(ConflictInRuntimeError, match="attempt 0 at container"):
        await world.created(config)
    second = await world.created(replace(config, attempt=1))
    assert {status.id for status in await world.runtime.list_containers()} == {first, second}


async def test_a_log_path_that_leaves_the_folder_of_logs_is_refused(world: World) -> None:
    for path in ("../other/0.log", "/etc/passwd", "web/../../x", "a\0b"):
        with pytest.raises(InvalidContainerError, match="leaves the pod's folder"):
            await world.created(replace(world.machine.runs_for_ever(), log_path=path))
    assert await world.runtime.list_containers() == []


async def test_a_started_container_runs(world: World) -> None:
    status = await world.status(await world.started(world.machine.runs_for_ever()))
    assert status.state is ContainerState.RUNNING
    assert status.started_at is not None
    assert status.started_at >= status.created_at
    assert (status.exit_code, status.finished_at) == (None, None)


async def test_a_container_is_started_only_once(world: World) -> None:
    container_id = await world.started(world.machine.runs_for_ever())
    with pytest.raises(ConflictInRuntimeError, match="was started before"):
        await world.runtime.start_container(container_id)
    await world.runtime.stop_container(container_id, grace_seconds=5)
    with pytest.raises(ConflictInRuntimeError, match="was started before"):
        await world.runtime.start_container(container_id)


async def test_of_two_starts_at_once_one_is_a_conflict(world: World) -> None:
    container_id = await world.created(world.machine.runs_for_ever())
    starts = [world.runtime.start_container(container_id) for _ in range(2)]
    outcomes = await asyncio.gather(*starts, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["ConflictInRuntimeError", "NoneType"]


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error")])
async def test_exit_code_reason_and_message_are_kept_when_it_ends_by_itself(
    world: World, code: int, reason: str
) -> None:
    config = world.machine.exits(code, output="first\nsecond\n", termination_message="it was time")
    status = await world.ended(await world.started(config))
    assert (status.exit_code, status.reason, status.termination_message) == (code, reason, "it was time")
    assert status.started_at is not None
    assert status.finished_at is not None
    assert status.finished_at >= status.started_at
    assert status.log_path is not None
    lines = [line.split(" ", 3) for line in status.log_path.read_text().splitlines()]
    assert [line[1:] for line in lines] == [["stdout", "F", "first"], ["stdout", "F", "second"]]


async def test_a_container_that_cannot_start_has_exited_with_128_and_says_why(world: World) -> None:
    container_id = await world.created(world.machine.cannot_start())
    with pytest.raises(StartContainerError, match="/there/is/no/such/program"):
        await world.runtime.start_container(container_id)
    status = await world.ended(container_id)
    assert (status.exit_code, status.reason) == (128, "StartError")
    assert "/there/is/no/such/program" in status.message


async def test_stop_asks_first_and_the_container_ends_by_the_signal(world: World) -> None:
    container_id = await world.started(world.machine.runs_for_ever())
    async with asyncio.timeout(60):
        await world.runtime.stop_container(container_id, grace_seconds=1000)
    status = await world.status(container_id)
    assert (status.state, status.exit_code, status.reason) == (ContainerState.EXITED, 143, "Error")


async def test_a_container_that_ends_within_its_grace_gives_its_own_code(world: World) -> None:
    container_id = await world.started(world.machine.ends_in_its_own_time(0.05))
    async with asyncio.timeout(60):
        await world.runtime.stop_container(container_id, grace_seconds=1000)
    assert (await world.status(container_id)).exit_code == 7


async def test_a_container_that_does_not_listen_is_killed_after_its_grace(world: World) -> None:
    container_id = await world.started(world.machine.ignores_stop())
    began = asyncio.get_running_loop().time()
    await world.runtime.stop_container(container_id, grace_seconds=0.3)
    assert asyncio.get_running_loop().time() - began >= 0.29
    assert (await world.status(container_id)).exit_code == 137


@pytest.mark.parametrize("grace_seconds", [(1000, 0.1), (0.2, 1000)])
async def test_a_second_stop_shortens_the_first_and_never_lengthens_it(
    world: World, grace_seconds: tuple[float, float]
) -> None:
    container_id = await world.started(world.machine.ignores_stop())
    async with asyncio.timeout(60), asyncio.TaskGroup() as stops:
        for grace in grace_seconds:
            stops.create_task(world.runtime.stop_container(container_id, grace_seconds=grace))
            await asyncio.sleep(0)
    assert (await world.status(container_id)).exit_code == 137


async def test_a_stop_whose_caller_gave_up_goes_on(world: World) -> None:
    container_id = await world.started(world.machine.ends_in_its_own_time(0.3))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await world.runtime.stop_container(container_id, grace_seconds=1000)
    assert (await world.ended(container_id)).exit_code == 7


async def test_stop_of_what_does_not_run_is_done_at_once(world: World) -> None:
    created = await world.created(world.machine.runs_for_ever())
    await world.runtime.stop_container(created, grace_seconds=1000)
    assert (await world.status(created)).state is ContainerState.CREATED
    exited = await world.started(world.machine.exits(3))
    await world.ended(exited)
    await world.runtime.stop_container(exited, grace_seconds=1000)
    assert (await world.status(exited)).exit_code == 3


async def test_removing_a_container_ends_it_and_leaves_its_log(world: World) -> None:
    exited = await world.started(world.machine.exits(0, output="kept\n"))
    log_path = (await world.ended(exited)).log_path
    # Not waited for until it is set up: it is removed at any moment.
    runs = await world.created(world.machine.ignores_stop())
    await world.runtime.start_container(runs)
    for container_id in (exited, runs, runs):
        await world.runtime.remove_container(container_id)
    assert await world.runtime.list_containers() == []
    assert log_path is not None
    assert "kept" in log_path.read_text()


async def test_a_container_nobody_knows_is_not_found_but_counts_as_removed(world: World) -> None:
    for question in (
        world.runtime.container_status("unknown"),
        world.runtime.start_container("unknown"),
        world.runtime.stop_container("unknown", grace_seconds=0),
    ):
        with pytest.raises(NotFoundInRuntimeError, match="container unknown not found"):
            await question
    await world.runtime.remove_container("unknown")


async def test_containers_are_listed_by_pod_and_by_sandbox(world: World) -> None:
    first, second = [await world.sandbox(uid="a", attempt=number) for number in (0, 1)]
    other = await world.sandbox(uid="b")
    in_first, in_second, in_other = [
        await world.runtime.create_container(sandbox_id, world.machine.runs_for_ever())
        for sandbox_id in (first, second, other)
    ]

    async def listed(**which: str) -> set[str]:
        return {status.id for status in await world.runtime.list_containers(**which)}

    assert await listed() == {in_first, in_second, in_other}
    assert await listed(pod_uid="a") == {in_first, in_second}
    assert await listed(sandbox_id=second) == {in_second}
    assert await listed(pod_uid="b", sandbox_id=second) == set()


async def test_an_image_has_a_reference_once_it_is_pulled(world: World) -> None:
    reference = await world.runtime.pull_image(world.machine.image_to_pull)
    assert await world.runtime.find_image(world.machine.image_to_pull) == reference


async def test_many_containers_at_once_each_end_with_their_own_code_and_are_told_once(world: World) -> None:
    told: Counter[str] = Counter()
    wanted: dict[str, int] = {}
    runtime, crowd = world.runtime, world.machine.crowd

    async def one(code: int) -> None:
        sandbox_id = await world.sandbox(uid=f"uid-of-{code}")
        container_id = await runtime.create_container(sandbox_id, world.machine.exits(code))
        wanted[container_id] = code
        await runtime.start_container(container_id)

    async with runtime.events() as events, asyncio.timeout(60):
        await asyncio.gather(*(one(code) for code in range(crowd)))
        while len(told) < crowd:
            event = await anext(events)
            if event.kind is EventKind.CONTAINER_STOPPED:
                told[event.container_id] += 1
        for sandbox in await runtime.list_sandboxes():
            await runtime.stop_sandbox(sandbox.id)
        await world.sandbox(uid="last")
        while (event := await anext(events)).pod_uid != "last":
            assert event.kind is EventKind.SANDBOX_STOPPED
    assert {status.id: status.exit_code for status in await runtime.list_containers()} == wanted
    assert set(told.values()) == {1}
