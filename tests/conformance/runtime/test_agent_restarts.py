"""The agent goes and comes again: what runs runs on, and what happened meanwhile is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerRuntimeError,
    ContainerState,
    NotFoundInRuntimeError,
    Resources,
    SandboxState,
)

from .machines import Machine, World


async def test_the_next_agent_finds_everything_as_it_was(machine: Machine, tmp_path: Path) -> None:
    async with machine.open() as runtime:
        world = World(runtime, machine, tmp_path)
        stopped = await world.sandbox(uid="old")
        await runtime.stop_sandbox(stopped)
        sandbox_id = await world.sandbox()
        created = await world.created(machine.runs_for_ever())
        runs = await world.started(machine.runs_for_ever())
        exited = await world.started(machine.exits(3, termination_message="why"))
        await world.ended(exited)
        before = {status.id: status for status in await runtime.list_containers()}
    async with machine.open() as runtime:
        after = {status.id: status for status in await runtime.list_containers()}
        assert {status.id: status.state for status in await runtime.list_sandboxes()} == {
            stopped: SandboxState.NOT_READY,
            sandbox_id: SandboxState.READY,
        }
        assert after == before
        assert {key: status.state for key, status in after.items()} == {
            created: ContainerState.CREATED,
            runs: ContainerState.RUNNING,
            exited: ContainerState.EXITED,
        }
        with pytest.raises(ConflictInRuntimeError):
            await runtime.start_container(runs)
        await runtime.start_container(created)
        await runtime.stop_container(runs, grace_seconds=5)
        assert (await runtime.container_status(runs)).exit_code == 143
        await runtime.remove_sandbox(sandbox_id)
        await runtime.remove_sandbox(stopped)


async def test_an_exit_while_nobody_looked_is_known_afterwards(machine: Machine, tmp_path: Path) -> None:
    async with machine.open() as runtime:
        container_id = await World(runtime, machine, tmp_path).started(machine.exits(3))
    async with machine.open() as runtime:
        world = World(runtime, machine, tmp_path)
        assert (await world.ended(container_id)).exit_code == 3
        await world.clear()


async def test_a_container_has_its_new_resources_also_for_the_next_agent(
    machine: Machine, tmp_path: Path
) -> None:
    small, large = Resources(100, 500, 256 << 20), Resources(200, 1000, 512 << 20)
    async with machine.open() as runtime:
        world = World(runtime, machine, tmp_path)
        container_id = await world.started(replace(machine.runs_for_ever(), resources=small))
        await runtime.update_container_resources(container_id, large)
        assert (await runtime.container_status(container_id)).config.resources == large
        [listed] = await runtime.list_containers()
        assert listed.config.resources == large
    async with machine.open() as runtime:
        status = await runtime.container_status(container_id)
        assert (status.config.resources, status.state) == (large, ContainerState.RUNNING)
        await runtime.stop_container(container_id, grace_seconds=0)
        with pytest.raises(ContainerRuntimeError):
            await runtime.update_container_resources(container_id, small)
        with pytest.raises(NotFoundInRuntimeError):
            await runtime.update_container_resources("f" * 64, small)
        await World(runtime, machine, tmp_path).clear()
