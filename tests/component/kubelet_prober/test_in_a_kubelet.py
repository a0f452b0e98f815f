"""What probes do to a pod on a whole node: simulated containers, real statuses and events, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from podlife.kubelet.runtime import ExecResult
from podlife.kubelet.runtimes.sim import Behaviour
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, node_world, pod
from tests.kit.objects import container

Object = dict[str, Any]


class Program:
    """What a command in the container says: `codes` by its first word."""

    def __init__(self, **codes: int) -> None:
        self.codes = codes
        self.commands: list[str] = []

    def __call__(self, command: Sequence[str]) -> ExecResult:
        self.commands.append(command[0])
        return ExecResult(self.codes.get(command[0], 0), b"", b"")


async def create(world: NodeWorld, program: Program, **fields: Any) -> None:
    """A pod whose one container has these fields, and answers commands as the program does."""
    world.behaviours["main"] = Behaviour(exec=program)
    await world.create(pod(containers=[container(**fields)]))


def probe(word: str, **fields: Any) -> Object:
    return {"exec": {"command": [word]}, "periodSeconds": 10, **fields}


def is_ready(each: Object) -> bool:
    conditions = {one["type"]: one["status"] for one in each["status"].get("conditions", [])}
    return conditions.get("Ready") == "True"


def restarts(each: Object) -> int:
    return int((each["status"].get("containerStatuses") or [{"restartCount": 0}])[0]["restartCount"])


async def told(world: NodeWorld, reason: str) -> list[str]:
    return [message for each, message, _ in await world.events() if each == reason]


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual_time
async def test_a_pod_is_ready_long_before_the_first_period_of_its_probe_is_over() -> None:
    async with node_world() as world:
        # An agent that has just begun spreads its first probes.
        await asyncio.sleep(60)
        began = now()
        await create(world, Program(), readinessProbe=probe("ready", periodSeconds=600))
        await world.until(is_ready)
        assert now() - began < 5


@virtual_time
async def test_a_pod_that_is_not_ready_any_more_is_shown_so_and_not_restarted() -> None:
    async with node_world() as world:
        program = Program()
        await create(world, program, readinessProbe=probe("ready"))
        await world.until(is_ready)
        program.codes["ready"] = 1
        ill = await world.until(lambda each: not is_ready(each))
        assert restarts(ill) == 0
        assert "Readiness probe failed: " in await told(world, "Unhealthy")
        program.codes["ready"] = 0
        await world.until(is_ready)


@virtual_time
async def test_a_container_that_is_found_ill_is_restarted_after_as_many_failures_as_it_says() -> None:
    async with node_world() as world:
        program = Program()
        await create(world, program, livenessProbe=probe("alive", failureThreshold=2))
        await world.until_phase("Running")
        await asyncio.sleep(35)
        assert restarts(await world.get()) == 0
        program.codes["alive"] = 1
        began = now()
        await world.until(lambda each: restarts(each) == 1)
        assert 10 <= now() - began < 25
        assert await told(world, "Killing") == ["Container main failed liveness probe, will be restarted"]
        program.codes["alive"] = 0
        await asyncio.sleep(60)
        assert restarts(await world.get()) == 1


@virtual_time
async def test_a_slow_start_is_waited_for_before_anything_else_is_asked() -> None:
    async with node_world() as world:
        program = Program(started=1)
        probes = {
            "startupProbe": probe("started", failureThreshold=30),
            "livenessProbe": probe("alive"),
            "readinessProbe": probe("ready"),
        }
        await create(world, program, **probes)
        await world.until_phase("Running")
        await asyncio.sleep(60)
        assert set(program.commands) == {"started"}
        program.codes["started"] = 0
        await world.until(is_ready)
        program.commands.clear()
        await asyncio.sleep(30)
        assert set(program.commands) == {"alive", "ready"}


@virtual_time
async def test_a_restarted_agent_does_not_call_a_ready_pod_unready() -> None:
    async with node_world() as world:
        await create(world, Program(), readinessProbe=probe("ready", periodSeconds=60))
        await world.until(is_ready)
        await asyncio.sleep(60)
        await world.kill()
        await world.begin()
        for _ in range(300):
            assert is_ready(await world.get())
            await asyncio.sleep(0.5)
