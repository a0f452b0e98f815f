"""Simulated containers under virtual time: an hour passes at once, and nothing is left waiting."""

from __future__ import annotations

import asyncio

import pytest

from podlife.clock import ManualClock
from podlife.kubelet.runtime import ContainerConfig, ContainerState, InvalidContainerError, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime, SimWorld
from podlife.testing import virtual_time


async def created(behaviour: Behaviour) -> tuple[SimRuntime, str]:
    """At the beginning of virtual time."""
    runtime = SimRuntime(SimWorld(ManualClock(), lambda *_: behaviour))
    sandbox_id = await runtime.run_sandbox(SandboxConfig("uid", "default", "web"))
    return runtime, await runtime.create_container(sandbox_id, ContainerConfig("main"))


def passed() -> float:
    return round(asyncio.get_running_loop().time(), 3)


async def ended(runtime: SimRuntime, container_id: str) -> int | None:
    async with runtime.events() as events:
        while (status := await runtime.container_status(container_id)).state is not ContainerState.EXITED:
            await anext(events)
    return status.exit_code


@virtual_time
async def test_a_container_runs_for_as_long_as_its_script_says() -> None:
    runtime, container_id = await created(Behaviour(start_seconds=5, run_seconds=3600, exit_code=3))
    await runtime.start_container(container_id)
    assert passed() == 5
    assert await ended(runtime, container_id) == 3
    assert passed() == 3605


@pytest.mark.parametrize(
    ("behaviour", "grace_seconds", "seconds", "code"),
    [
        (Behaviour(), 30, 0, 143),
        (Behaviour(stop_seconds=10, stop_exit_code=0), 30, 10, 0),
        (Behaviour(stop_seconds=60), 30, 30, 137),
        (Behaviour(stop_seconds=None), 30, 30, 137),
        (Behaviour(stop_seconds=60), 0, 0, 137),
        # It ends by itself while it is being stopped.
        (Behaviour(run_seconds=7, exit_code=4, stop_seconds=None), 30, 7, 4),
        (Behaviour(run_seconds=7, exit_code=4, stop_seconds=20), 30, 7, 4),
    ],
)
@virtual_time
async def test_a_stop_takes_as_long_as_the_container_or_its_grace(
    behaviour: Behaviour, grace_seconds: float, seconds: float, code: int
) -> None:
    runtime, container_id = await created(behaviour)
    await runtime.start_container(container_id)
    await runtime.stop_container(container_id, grace_seconds=grace_seconds)
    assert (passed(), (await runtime.container_status(container_id)).exit_code) == (seconds, code)


@pytest.mark.parametrize(
    ("behaviour", "graces", "seconds", "code"),
    [
        (Behaviour(stop_seconds=None), (30, 1000, 10, 20), 10, 137),
        # The end that it had chosen is not postponed.
        (Behaviour(stop_seconds=5, stop_exit_code=0), (30, 20), 5, 0),
    ],
)
@virtual_time
async def test_a_second_stop_only_ever_brings_the_end_nearer(
    behaviour: Behaviour, graces: tuple[float, ...], seconds: float, code: int
) -> None:
    runtime, container_id = await created(behaviour)
    await runtime.start_container(container_id)
    async with asyncio.TaskGroup() as stops:
        for grace_seconds in graces:
            stops.create_task(runtime.stop_container(container_id, grace_seconds=grace_seconds))
    assert (passed(), (await runtime.container_status(container_id)).exit_code) == (seconds, code)


@virtual_time
async def test_a_stop_while_it_starts_waits_for_the_start() -> None:
    runtime, container_id = await created(Behaviour(start_seconds=8))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(runtime.start_container(container_id))
        await asyncio.sleep(1)
        tasks.create_task(runtime.stop_container(container_id, grace_seconds=30))
    assert (passed(), (await runtime.container_status(container_id)).exit_code) == (8, 143)


@virtual_time
async def test_a_start_whose_caller_gave_up_happens_all_the_same() -> None:
    runtime, container_id = await created(Behaviour(start_seconds=8))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await runtime.start_container(container_id)
    await asyncio.sleep(10)
    assert (await runtime.container_status(container_id)).state is ContainerState.RUNNING


@virtual_time
async def test_a_script_refuses_a_container_or_lets_it_run_out_of_memory() -> None:
    with pytest.raises(InvalidContainerError, match="no such volume"):
        await created(Behaviour(refusal="no such volume"))
    runtime, container_id = await created(Behaviour(run_seconds=1, exit_code=137, out_of_memory=True))
    await runtime.start_container(container_id)
    await ended(runtime, container_id)
    assert (await runtime.container_status(container_id)).reason == "OOMKilled"


@virtual_time
async def test_ten_thousand_pods_start_and_end_without_a_task_each() -> None:
    runtime = SimRuntime(SimWorld(ManualClock(), lambda *_: Behaviour(run_seconds=60)))
    for number in range(10_000):
        sandbox_id = await runtime.run_sandbox(SandboxConfig(f"uid-{number}", "default", f"web-{number}"))
        await runtime.start_container(await runtime.create_container(sandbox_id, ContainerConfig("main")))
    assert len(asyncio.all_tasks()) == 1
    await asyncio.sleep(61)
    assert {status.exit_code for status in await runtime.list_containers()} == {0}
    for sandbox in await runtime.list_sandboxes():
        await runtime.remove_sandbox(sandbox.id)
    assert await runtime.list_containers() == []
