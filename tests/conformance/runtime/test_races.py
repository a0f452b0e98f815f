"""Many callers who know nothing of each other, on the same few containers: every answer is one of the documented ones,
no container starts twice, every end is told once, and everything can be removed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.kubelet.runtime import ContainerConfig, ContainerRuntimeError, EventKind

from .machines import World

_CALLERS = 6


class Callers:
    def __init__(self, world: World, seed: int) -> None:
        runtime = world.runtime
        self._world = world
        self._machine = world.machine
        self._random = random.Random(seed)
        self._sandboxes: list[str] = []
        self._containers: list[str] = []
        self._orders: list[Callable[[], Awaitable[object]]] = [
            self._run_sandbox,
            self._create,
            self._create,
            lambda: runtime.start_container(self._one(self._containers)),
            lambda: runtime.start_container(self._one(self._containers)),
            lambda: runtime.stop_container(self._one(self._containers), grace_seconds=0.1),
            lambda: runtime.stop_container(self._one(self._containers), grace_seconds=0),
            lambda: runtime.remove_container(self._one(self._containers)),
            lambda: runtime.stop_sandbox(self._one(self._sandboxes)),
            lambda: runtime.remove_sandbox(self._one(self._sandboxes)),
        ]

    async def begin(self) -> None:
        """One container that runs: by luck alone a short run may never come to that."""
        await self._run_sandbox()
        config = self._machine.runs_for_ever()
        self._containers.append(await self._world.runtime.create_container(self._sandboxes[0], config))
        await self._world.runtime.start_container(self._containers[0])

    async def run(self) -> None:
        for _ in range(self._machine.race_orders):
            # Now and then somebody does not wait for the answer.
            patience = self._machine.race_seconds
            seconds = self._random.choice([patience, patience, patience, 0.005])
            try:
                async with asyncio.timeout(seconds):
                    await self._random.choice(self._orders)()
            except ContainerRuntimeError:
                continue
            except TimeoutError:
                assert seconds < 1, "an order was never answered"

    def _one(self, ids: list[str]) -> str:
        return self._random.choice(ids[-4:]) if ids else "unknown"

    async def _run_sandbox(self) -> None:
        self._sandboxes.append(await self._world.sandbox(uid=f"uid-{self._random.random()}"))

    async def _create(self) -> None:
        machine, sandbox_id = self._machine, self._one(self._sandboxes)
        programs: list[Callable[[], ContainerConfig]] = [
            machine.runs_for_ever,
            machine.ignores_stop,
            machine.cannot_start,
            lambda: machine.exits(3),
        ]
        config = self._random.choice(programs)()
        self._containers.append(await self._world.runtime.create_container(sandbox_id, config))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_orders_at_once_leave_nothing_twice_and_nothing_behind(world: World, seed: int) -> None:
    runtime = world.runtime
    told: Counter[tuple[EventKind, str]] = Counter()

    async def listen() -> None:
        async with runtime.events() as events:
            async for event in events:
                assert event.kind is not EventKind.RELIST
                told[event.kind, event.container_id or event.sandbox_id] += 1

    listener = spawn(listen(), name="listener", on_failure=lambda failure: pytest.fail(str(failure)))
    await asyncio.sleep(0)
    callers = Callers(world, seed)
    await callers.begin()
    await asyncio.gather(*(callers.run() for _ in range(_CALLERS)))
    await world.clear()
    assert await runtime.list_containers() == []
    await asyncio.sleep(0)
    await cancel_and_wait(listener)
    assert {kind for kind, _ in told} == set(EventKind) - {EventKind.RELIST}
    assert [what for what, times in told.items() if times != 1] == []
    created = {container for kind, container in told if kind is EventKind.CONTAINER_CREATED}
    assert created == {container for kind, container in told if kind is EventKind.CONTAINER_REMOVED}
    started = {container for kind, container in told if kind is EventKind.CONTAINER_STARTED}
    assert started <= {container for kind, container in told if kind is EventKind.CONTAINER_STOPPED}
