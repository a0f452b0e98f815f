"""Sandboxes: made ready, listed, stopped and removed, each as often as somebody asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerState,
    NotFoundInRuntimeError,
    SandboxState,
)

from .machines import World, pod


async def test_a_sandbox_is_ready_with_an_address_once_it_runs(world: World) -> None:
    sandbox_id = await world.sandbox()
    status = await world.runtime.sandbox_status(sandbox_id)
    assert (status.id, status.config, status.state) == (sandbox_id, pod(world.folder), SandboxState.READY)
    assert status.ips


async def test_the_same_attempt_at_a_pod_twice_is_a_conflict(world: World) -> None:
    await world.sandbox()
    with pytest.raises(ConflictInRuntimeError, match="attempt 0 at pod default/web"):
        await world.sandbox()
    assert len(await world.runtime.list_sandboxes()) == 1


async def test_sandboxes_are_listed_by_pod(world: World) -> None:
    first = await world.sandbox(uid="a")
    second = await world.sandbox(uid="a", attempt=1)
    other = await world.sandbox(uid="b")
    assert {status.id for status in await world.runtime.list_sandboxes(pod_uid="a")} == {first, second}
    assert {status.id for status in await world.runtime.list_sandboxes()} == {first, second, other}


async def test_stopping_a_sandbox_ends_its_containers_and_lets_nothing_in(world: World) -> None:
    runtime, sandbox_id = world.runtime, await world.sandbox()
    waits = await world.created(world.machine.runs_for_ever())
    config = world.machine.ignores_stop()
    runs = await runtime.create_container(sandbox_id, config)
    await runtime.start_container(runs)
    await runtime.stop_sandbox(sandbox_id)
    await runtime.stop_sandbox(sandbox_id)
    assert (await runtime.sandbox_status(sandbox_id)).state is SandboxState.NOT_READY
    assert (await runtime.container_status(runs)).exit_code == 137
    with pytest.raises(ConflictInRuntimeError, match="is stopped"):
        await runtime.start_container(waits)
    with pytest.raises(ConflictInRuntimeError, match="is stopped"):
        await runtime.create_container(sandbox_id, replace(config, attempt=1))


async def test_removing_a_sandbox_takes_its_containers_along(world: World) -> None:
    runtime, sandbox_id = world.runtime, await world.sandbox()
    container_id = await world.started(world.machine.runs_for_ever())
    assert (await world.status(container_id)).state is ContainerState.RUNNING
    await runtime.remove_sandbox(sandbox_id)
    await runtime.remove_sandbox(sandbox_id)
    assert await runtime.list_sandboxes() == []
    assert await runtime.list_containers() == []
    with pytest.raises(NotFoundInRuntimeError):
        await world.status(container_id)


async def test_a_sandbox_nobody_knows_counts_as_stopped_and_removed(world: World) -> None:
    await world.runtime.stop_sandbox("unknown")
    await world.runtime.remove_sandbox("unknown")
    with pytest.raises(NotFoundInRuntimeError, match="sandbox unknown not found"):
        await world.runtime.sandbox_status("unknown")
