"""Events in the order of what happened, and commands in a running container."""

from __future__ import annotations

import asyncio

import pytest

from podlife.kubelet.runtime import (
    EventKind,
    ExecError,
    InvalidContainerError,
    NotFoundInRuntimeError,
    RuntimeEvent,
)

from .machines import World


async def test_every_step_of_a_pod_is_told_in_order(world: World) -> None:
    async with world.runtime.events() as events, asyncio.timeout(60):
        sandbox_id = await world.sandbox()
        container_id = await world.started(world.machine.exits(0))
        seen = [await anext(events) for _ in range(4)]
        await world.runtime.remove_sandbox(sandbox_id)
        seen += [await anext(events) for _ in range(3)]
    sandbox = {"pod_uid": "uid-1", "sandbox_id": sandbox_id}
    container = sandbox | {"container_id": container_id}
    assert seen == [
        RuntimeEvent(EventKind.SANDBOX_STARTED, **sandbox),
        RuntimeEvent(EventKind.CONTAINER_CREATED, **container),
        RuntimeEvent(EventKind.CONTAINER_STARTED, **container),
        RuntimeEvent(EventKind.CONTAINER_STOPPED, **container),
        RuntimeEvent(EventKind.SANDBOX_STOPPED, **sandbox),
        RuntimeEvent(EventKind.CONTAINER_REMOVED, **container),
        RuntimeEvent(EventKind.SANDBOX_REMOVED, **sandbox),
    ]


async def test_a_container_that_could_not_start_is_told_as_stopped_alone(world: World) -> None:
    container_id = await world.created(world.machine.cannot_start())
    async with world.runtime.events() as events, asyncio.timeout(60):
        with pytest.raises(Exception, match="cannot start"):
            await world.runtime.start_container(container_id)
        await world.sandbox(uid="after")
        assert (await anext(events)).kind is EventKind.CONTAINER_STOPPED
        assert (await anext(events)).kind is EventKind.SANDBOX_STARTED


async def test_everybody_who_listens_hears_it(world: World) -> None:
    async with world.runtime.events() as first, world.runtime.events() as second, asyncio.timeout(60):
        await world.sandbox()
        assert await anext(first) == await anext(second)


async def test_a_command_gives_its_output_and_its_code(world: World) -> None:
    container_id = await world.started(world.machine.runs_for_ever())
    command = ["sh", "-c", "echo out; echo err >&2; exit 4"]
    result = await world.runtime.exec_sync(container_id, command, timeout_seconds=60)
    assert (result.exit_code, result.stdout, result.stderr) == (4, b"out\n", b"err\n")
    async with world.runtime.exec(container_id, command, tty=True) as session:
        assert sorted((await session.stdout.read()).split()) == [b"err", b"out"]
        assert await session.stderr.read() == b""
        assert await session.wait() == 4


async def test_a_command_needs_a_container_that_runs(world: World) -> None:
    container_id = await world.started(world.machine.runs_for_ever())
    with pytest.raises(InvalidContainerError, match="no command"):
        await world.runtime.exec_sync(container_id, [])
    await world.runtime.stop_container(container_id, grace_seconds=5)
    with pytest.raises(ExecError, match="does not run"):
        await world.runtime.exec_sync(container_id, ["true"])
    await world.clear()
    with pytest.raises(NotFoundInRuntimeError):
        await world.runtime.exec_sync(container_id, ["true"])
