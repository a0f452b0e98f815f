"""The daemon is killed and comes back: containers run on, no exit code is lost, and the agent waits without an error of
its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podlife.kubelet.runtime import (
    ContainerState,
    EventKind,
    Mount,
    Runtime,
    RuntimeEvent,
    RuntimeUnavailableError,
    SandboxState,
)
from tests.kit.wait import until

from .conftest import ContainerdWorld, own_daemon
from .daemon import Daemon
from .machine import ContainerdMachine

# How long anything may take that is waited for.
SECONDS = 120.0


# One of its own: what is killed here would disturb the others.
daemon = pytest.fixture(scope="module")(own_daemon)


@pytest.fixture
def machine(daemon: Daemon, tmp_path: Path) -> ContainerdMachine:
    return ContainerdMachine(daemon, tmp_path, "")


@pytest.fixture
async def world(machine: ContainerdMachine, tmp_path: Path) -> AsyncIterator[ContainerdWorld]:
    async with machine.open() as opened:
        made = ContainerdWorld(opened, machine, tmp_path)
        yield made
        await until_it_answers(opened)
        await made.clear()


async def until_it_answers(runtime: Runtime) -> None:
    async def answers() -> bool:
        with contextlib.suppress(RuntimeUnavailableError):
            return bool(await runtime.version())
        return False

    await until(answers, seconds=SECONDS)


async def restart(daemon: Daemon) -> None:
    await asyncio.to_thread(daemon.start)


async def test_what_ran_runs_on_and_what_ended_meanwhile_is_told_with_its_code(
    world: ContainerdWorld, daemon: Daemon, tmp_path: Path
) -> None:
    runtime, machine, shared = world.runtime, world.machine, tmp_path / "shared"
    shared.mkdir()
    sandbox_id = await world.sandbox()
    waits = machine.runs(
        "while [ ! -e /shared/go ]; do sleep 0.05; done; echo bye > /dev/termination-log; touch /shared/gone; exit 9",
        mounts=(Mount("/shared", str(shared)),),
    )
    ends, stays = await world.started(waits), await world.started(machine.runs_for_ever())
    before = await runtime.container_status(stays)
    async with runtime.events() as events:
        daemon.kill()
        with pytest.raises(RuntimeUnavailableError, match="does not answer"):
            await runtime.container_status(ends)
        (shared / "go").touch()
        await until((shared / "gone").exists, seconds=SECONDS)
        await restart(daemon)
        async with asyncio.timeout(SECONDS):
            event = await anext(events)
        assert event == RuntimeEvent(EventKind.CONTAINER_STOPPED, "uid-1", sandbox_id, ends)
    status = await runtime.container_status(ends)
    assert status.termination_message == "bye\n"
    # Daemons from version 2 on forget the code of what ended while they were away, and say so.
    forgets = not (await runtime.version()).startswith("1.")
    assert (status.exit_code, status.reason) in [(9, "Error")] + forgets * [(255, "ContainerStatusUnknown")]
    assert await runtime.container_status(stays) == before
    assert (await runtime.sandbox_status(sandbox_id)).state is SandboxState.READY
    assert (await runtime.exec_sync(stays, ["echo", "here"], timeout_seconds=SECONDS)).stdout == b"here\n"
    await runtime.stop_container(stays, grace_seconds=60)
    assert (await runtime.container_status(stays)).exit_code == 143


async def test_a_daemon_that_dies_between_term_and_kill_leaves_the_container_to_the_next_stop(
    world: ContainerdWorld, daemon: Daemon
) -> None:
    runtime = world.runtime
    container_id = await world.started(world.machine.ignores_stop())
    stop = asyncio.gather(runtime.stop_container(container_id, grace_seconds=1000), return_exceptions=True)
    await asyncio.sleep(0.3)
    daemon.kill()
    [outcome] = await stop
    assert isinstance(outcome, RuntimeUnavailableError)
    await restart(daemon)
    await until_it_answers(runtime)
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
    await runtime.stop_container(container_id, grace_seconds=0)
    assert (await runtime.container_status(container_id)).exit_code == 137


async def test_an_agent_that_comes_while_the_daemon_is_away_finds_everything_once_it_is_back(
    machine: ContainerdMachine, daemon: Daemon, tmp_path: Path
) -> None:
    async with machine.open() as first:
        world = ContainerdWorld(first, machine, tmp_path)
        container_id = await world.started(machine.exits(4, termination_message="why"))
        await world.ended(container_id)
    daemon.kill()
    async with machine.open() as second:
        with pytest.raises(RuntimeUnavailableError, match=str(daemon.socket)):
            await second.list_containers()
        async with second.events() as events:
            await restart(daemon)
            async with asyncio.timeout(SECONDS):
                assert (await anext(events)).kind is EventKind.RELIST
        [status] = await second.list_containers()
        assert (status.id, status.exit_code, status.termination_message) == (container_id, 4, "why")
        await second.remove_sandbox(status.sandbox_id)


async def test_of_a_container_whose_shim_was_killed_the_end_is_known_all_the_same(
    world: ContainerdWorld, daemon: Daemon
) -> None:
    sandbox_id = await world.sandbox()
    # Not waited for until it is set up: the shim may go at any moment.
    container_id = await world.created(world.machine.runs_for_ever())
    await world.runtime.start_container(container_id)
    for shim in daemon.shims_of(sandbox_id):
        os.kill(shim, 9)
    status = await world.ended(container_id)
    assert status.exit_code not in (None, 0)
    assert status.reason in ("Error", "ContainerStatusUnknown")
