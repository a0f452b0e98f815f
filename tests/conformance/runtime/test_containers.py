"""Containers: created, started once, stopped with grace, removed; and what is known of them at each step."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerState,
    EventKind,
    InvalidContainerError,
    NotFoundInRuntimeError,
    Runtime,
    StartContainerError,
)

from .machines import Machine, attempt, ended, pod, running


async def test_a_created_container_has_not_started(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    config = machine.runs_for_ever()
    container_id = await runtime.create_container(sandbox_id, config)
    status = await runtime.container_status(container_id)
    assert (status.sandbox_id, status.pod_uid, status.config) == (sandbox_id, "uid-1", config)
    assert (status.state, status.started_at, status.exit_code) == (ContainerState.CREATED, None, None)
    assert status.log_path == tmp_path / "logs" / config.log_path


async def test_the_same_attempt_at_a_container_twice_is_a_conflict_and_the_next_attempt_is_not(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    config = machine.runs_for_ever()
    first = await runtime.create_container(sandbox_id, config)
    with pytest.raises(ConflictInRuntimeError, match="attempt 0 at container"):
        await runtime.create_container(sandbox_id, config)
    second = await runtime.create_container(sandbox_id, attempt(config, 1))
    assert {status.id for status in await runtime.list_containers()} == {first, second}


async def test_a_log_path_that_leaves_the_folder_of_logs_is_refused(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    for path in ("../other/0.log", "/etc/passwd", "web/../../x", "a\0b"):
        with pytest.raises(InvalidContainerError, match="leaves the pod's folder"):
            await runtime.create_container(sandbox_id, replace(machine.runs_for_ever(), log_path=path))
    assert await runtime.list_containers() == []


async def test_a_started_container_runs(runtime: Runtime, machine: Machine, tmp_path: Path) -> None:
    async with running(runtime, tmp_path, machine.runs_for_ever()) as container_id:
        status = await runtime.container_status(container_id)
        assert status.state is ContainerState.RUNNING
        assert status.started_at is not None
        assert status.started_at >= status.created_at
        assert (status.exit_code, status.finished_at) == (None, None)


async def test_a_container_is_started_only_once(runtime: Runtime, machine: Machine, tmp_path: Path) -> None:
    async with running(runtime, tmp_path, machine.runs_for_ever()) as container_id:
        with pytest.raises(ConflictInRuntimeError, match="was started before"):
            await runtime.start_container(container_id)
        await runtime.stop_container(container_id, grace_seconds=5)
        with pytest.raises(ConflictInRuntimeError, match="was started before"):
            await runtime.start_container(container_id)


async def test_of_two_starts_at_once_one_is_a_conflict(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    container_id = await runtime.create_container(sandbox_id, machine.runs_for_ever())
    starts = await asyncio.gather(
        runtime.start_container(container_id),
        runtime.start_container(container_id),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in starts) == ["ConflictInRuntimeError", "NoneType"]


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error")])
async def test_exit_code_reason_and_message_are_kept_when_it_ends_by_itself(
    runtime: Runtime, machine: Machine, tmp_path: Path, code: int, reason: str
) -> None:
    config = machine.exits(code, output="first\nsecond\n", termination_message="it was time")
    async with running(runtime, tmp_path, config) as container_id:
        status = await ended(runtime, container_id)
        assert (status.exit_code, status.reason, status.termination_message) == (code, reason, "it was time")
        assert status.started_at is not None
        assert status.finished_at is not None
        assert status.finished_at >= status.started_at
        assert status.log_path is not None
        lines = [line.split(" ", 3) for line in status.log_path.read_text().splitlines()]
        assert [line[1:] for line in lines] == [["stdout", "F", "first"], ["stdout", "F", "second"]]


async def test_a_container_that_cannot_start_has_exited_with_128_and_says_why(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    container_id = await runtime.create_container(sandbox_id, machine.cannot_start())
    with pytest.raises(StartContainerError, match="/there/is/no/such/program"):
        await runtime.start_container(container_id)
    status = await ended(runtime, container_id)
    assert (status.exit_code, status.reason) == (128, "StartError")
    assert "/there/is/no/such/program" in status.message


async def test_stop_asks_first_and_the_container_ends_by_the_signal(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    async with running(runtime, tmp_path, machine.runs_for_ever()) as container_id:
        async with asyncio.timeout(60):
            await runtime.stop_container(container_id, grace_seconds=1000)
        status = await runtime.container_status(container_id)
        assert (status.state, status.exit_code, status.reason) == (ContainerState.EXITED, 143, "Error")


async def test_a_container_that_ends_within_its_grace_gives_its_own_code(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    async with running(runtime, tmp_path, machine.ends_in_its_own_time(0.05)) as container_id:
        async with asyncio.timeout(60):
            await runtime.stop_container(container_id, grace_seconds=1000)
        assert (await runtime.container_status(container_id)).exit_code == 7


async def test_a_container_that_does_not_listen_is_killed_after_its_grace(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    async with running(runtime, tmp_path, machine.ignores_stop()) as container_id:
        began = asyncio.get_running_loop().time()
        await runtime.stop_container(container_id, grace_seconds=0.3)
        assert asyncio.get_running_loop().time() - began >= 0.29
        assert (await runtime.container_status(container_id)).exit_code == 137


async def test_a_second_stop_with_less_grace_shortens_the_first(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    async with running(runtime, tmp_path, machine.ignores_stop()) as container_id, asyncio.timeout(60):
        async with asyncio.TaskGroup() as stops:
            stops.create_task(runtime.stop_container(container_id, grace_seconds=1000))
            await asyncio.sleep(0)
            stops.create_task(runtime.stop_container(container_id, grace_seconds=0.1))
        assert (await runtime.container_status(container_id)).exit_code == 137


async def test_a_second_stop_with_more_grace_does_not_lengthen_the_first(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    async with running(runtime, tmp_path, machine.ignores_stop()) as container_id, asyncio.timeout(60):
        async with asyncio.TaskGroup() as stops:
            stops.create_task(runtime.stop_container(container_id, grace_seconds=0.2))
            await asyncio.sleep(0)
            stops.create_task(runtime.stop_container(container_id, grace_seconds=1000))
        assert (await runtime.container_status(container_id)).exit_code == 137


async def test_a_stop_whose_caller_gave_up_goes_on(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    async with running(runtime, tmp_path, machine.ends_in_its_own_time(0.3)) as container_id:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await runtime.stop_container(container_id, grace_seconds=1000)
        assert (await ended(runtime, container_id)).exit_code == 7


async def test_stop_of_what_does_not_run_is_done_at_once(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    created = await runtime.create_container(sandbox_id, machine.runs_for_ever())
    await runtime.stop_container(created, grace_seconds=1000)
    assert (await runtime.container_status(created)).state is ContainerState.CREATED
    exited = await runtime.create_container(sandbox_id, machine.exits(3))
    await runtime.start_container(exited)
    await ended(runtime, exited)
    await runtime.stop_container(exited, grace_seconds=1000)
    assert (await runtime.container_status(exited)).exit_code == 3


async def test_removing_a_container_ends_it_and_leaves_its_log(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    exited = await runtime.create_container(sandbox_id, machine.exits(0, output="kept\n"))
    await runtime.start_container(exited)
    log_path = (await ended(runtime, exited)).log_path
    runs = await runtime.create_container(sandbox_id, machine.ignores_stop())
    await runtime.start_container(runs)
    for container_id in (exited, runs, runs):
        await runtime.remove_container(container_id)
    assert await runtime.list_containers() == []
    assert log_path is not None
    assert "kept" in log_path.read_text()


async def test_a_container_nobody_knows_is_not_found_but_counts_as_removed(runtime: Runtime) -> None:
    for question in (
        runtime.container_status("unknown"),
        runtime.start_container("unknown"),
        runtime.stop_container("unknown", grace_seconds=0),
    ):
        with pytest.raises(NotFoundInRuntimeError, match="no container unknown"):
            await question
    await runtime.remove_container("unknown")


async def test_containers_are_listed_by_pod_and_by_sandbox(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    first, second = [await runtime.run_sandbox(pod(tmp_path, uid="a", attempt=number)) for number in (0, 1)]
    other = await runtime.run_sandbox(pod(tmp_path, uid="b"))
    in_first, in_second, in_other = [
        await runtime.create_container(sandbox_id, machine.runs_for_ever())
        for sandbox_id in (first, second, other)
    ]

    async def listed(**which: str) -> set[str]:
        return {status.id for status in await runtime.list_containers(**which)}

    assert await listed() == {in_first, in_second, in_other}
    assert await listed(pod_uid="a") == {in_first, in_second}
    assert await listed(sandbox_id=second) == {in_second}
    assert await listed(pod_uid="b", sandbox_id=second) == set()


async def test_an_image_has_a_reference_once_it_is_pulled(runtime: Runtime, machine: Machine) -> None:
    reference = await runtime.pull_image(machine.image_to_pull)
    assert await runtime.find_image(machine.image_to_pull) == reference


async def test_many_containers_at_once_each_end_with_their_own_code_and_are_told_once(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    told: Counter[str] = Counter()
    wanted: dict[str, int] = {}

    async def one(code: int) -> None:
        sandbox_id = await runtime.run_sandbox(pod(tmp_path, uid=f"uid-{code}"))
        container_id = await runtime.create_container(sandbox_id, machine.exits(code))
        wanted[container_id] = code
        await runtime.start_container(container_id)

    async with runtime.events() as events, asyncio.timeout(60):
        await asyncio.gather(*(one(code) for code in range(machine.crowd)))
        while len(told) < machine.crowd:
            event = await anext(events)
            if event.kind is EventKind.CONTAINER_STOPPED:
                told[event.container_id] += 1
        for sandbox in await runtime.list_sandboxes():
            await runtime.stop_sandbox(sandbox.id)
        await runtime.run_sandbox(pod(tmp_path, uid="last"))
        while (event := await anext(events)).pod_uid != "last":
            assert event.kind is EventKind.SANDBOX_STOPPED
    assert {status.id: status.exit_code for status in await runtime.list_containers()} == wanted
    assert set(told.values()) == {1}
