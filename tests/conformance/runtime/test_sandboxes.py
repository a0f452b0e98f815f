"""Sandboxes: made ready, listed, stopped and removed, each as often as somebody asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.kubelet.runtime import (
    ConflictInRuntimeError,
    ContainerState,
    NotFoundInRuntimeError,
    Runtime,
    SandboxState,
)

from .machines import Machine, attempt, pod


async def test_a_sandbox_is_ready_with_an_address_once_it_runs(runtime: Runtime, tmp_path: Path) -> None:
    config = pod(tmp_path)
    sandbox_id = await runtime.run_sandbox(config)
    status = await runtime.sandbox_status(sandbox_id)
    assert (status.id, status.config, status.state) == (sandbox_id, config, SandboxState.READY)
    assert status.ips


async def test_the_same_attempt_at_a_pod_twice_is_a_conflict(runtime: Runtime, tmp_path: Path) -> None:
    await runtime.run_sandbox(pod(tmp_path))
    with pytest.raises(ConflictInRuntimeError, match="attempt 0 at pod default/web"):
        await runtime.run_sandbox(pod(tmp_path))
    assert len(await runtime.list_sandboxes()) == 1


async def test_sandboxes_are_listed_by_pod(runtime: Runtime, tmp_path: Path) -> None:
    first = await runtime.run_sandbox(pod(tmp_path, uid="a"))
    second = await runtime.run_sandbox(pod(tmp_path, uid="a", attempt=1))
    other = await runtime.run_sandbox(pod(tmp_path, uid="b"))
    assert {status.id for status in await runtime.list_sandboxes(pod_uid="a")} == {first, second}
    assert {status.id for status in await runtime.list_sandboxes()} == {first, second, other}


async def test_stopping_a_sandbox_ends_its_containers_and_lets_nothing_in(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    waits = await runtime.create_container(sandbox_id, machine.runs_for_ever())
    config = machine.ignores_stop()
    runs = await runtime.create_container(sandbox_id, config)
    await runtime.start_container(runs)
    await runtime.stop_sandbox(sandbox_id)
    await runtime.stop_sandbox(sandbox_id)
    assert (await runtime.sandbox_status(sandbox_id)).state is SandboxState.NOT_READY
    assert (await runtime.container_status(runs)).exit_code == 137
    with pytest.raises(ConflictInRuntimeError, match="is stopped"):
        await runtime.start_container(waits)
    with pytest.raises(ConflictInRuntimeError, match="is stopped"):
        await runtime.create_container(sandbox_id, attempt(config, 1))


async def test_removing_a_sandbox_takes_its_containers_along(
    runtime: Runtime, machine: Machine, tmp_path: Path
) -> None:
    sandbox_id = await runtime.run_sandbox(pod(tmp_path))
    container_id = await runtime.create_container(sandbox_id, machine.runs_for_ever())
    await runtime.start_container(container_id)
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING
    await runtime.remove_sandbox(sandbox_id)
    await runtime.remove_sandbox(sandbox_id)
    assert await runtime.list_sandboxes() == []
    assert await runtime.list_containers() == []
    with pytest.raises(NotFoundInRuntimeError):
        await runtime.container_status(container_id)


async def test_a_sandbox_nobody_knows_counts_as_stopped_and_removed(runtime: Runtime) -> None:
    await runtime.stop_sandbox("unknown")
    await runtime.remove_sandbox("unknown")
    with pytest.raises(NotFoundInRuntimeError, match="no sandbox unknown"):
        await runtime.sandbox_status("unknown")
