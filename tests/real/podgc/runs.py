"""Gives the same states to kube-controller-manager's collector and to ours, each on a server of its own.

Theirs looks when it starts and every 20 seconds, and leaves orphans alone for 40: it says in its log when a pass
has begun its last part. Where no orphan is waited for, it is started twice, which is two passes in a few seconds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from podlife.podgc import Settings
from tests.kit.real_parts import Server, controller_manager
from tests.real.podgc import states
from tests.real.podgc.cluster import Object, connect, look_again, running, until
from tests.real.podgc.states import World

CONTROLLER = "pod-garbage-collector-controller"
# At 0, 20, 40 and 60 seconds: an orphan that was seen in the first is collected in the last at the latest.
PASSES_WITH_ORPHANS = 4
QUARANTINE_SECONDS = 5.0


@dataclass(frozen=True)
class Left:
    """What either collector left, by state."""

    theirs: dict[str, Object]
    ours: dict[str, Object]


class Pair:
    """Two servers that hold the same; asking for a world runs it once."""

    def __init__(self, theirs: Server, ours: Server, folder: Path) -> None:
        self._theirs = theirs
        self._ours = ours
        self._folder = folder
        self._left: dict[str, Left] = {}

    def left(self, world: World) -> Left:
        if world.name not in self._left:
            self._left[world.name] = self._run(world)
        return self._left[world.name]

    def _run(self, world: World) -> Left:
        asyncio.run(self._prepare(world))
        if world.has_orphans:
            self._collect(world, PASSES_WITH_ORPHANS, with_ours=True)
        else:
            self._collect(world, 1, with_ours=True)
            self._collect(world, 1, with_ours=False)
        return asyncio.run(self._read(world))

    def _collect(self, world: World, passes: int, *, with_ours: bool) -> None:
        flags = (f"--terminated-pod-gc-threshold={world.threshold}", "-v=4")
        with controller_manager(self._folder / "kcm", self._theirs, [CONTROLLER], *flags) as log:
            asyncio.run(self._watch(world, log, passes, with_ours=with_ours))

    async def _watch(self, world: World, log: Path, passes: int, *, with_ours: bool) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_watch_theirs(self._theirs, world, log, passes))
            if with_ours:
                group.create_task(_run_ours(self._ours, world))

    async def _prepare(self, world: World) -> None:
        async with connect(self._theirs) as theirs, connect(self._ours) as ours:
            await asyncio.gather(states.clear(theirs), states.clear(ours))
            await asyncio.gather(states.build(theirs, world), states.build(ours, world))

    async def _read(self, world: World) -> Left:
        async with connect(self._theirs) as theirs, connect(self._ours) as ours:
            return Left(await states.read(theirs, world), await states.read(ours, world))


async def _watch_theirs(server: Server, world: World, log: Path, passes: int) -> None:
    async def lines() -> str:
        return await asyncio.to_thread(log.read_text)

    await until(lines, lambda text: _passes(text) >= 1, seconds=180)
    async with connect(server) as client:
        for state in world.states:
            if state.then is not None:
                await state.then(client, state)
    await until(lines, lambda text: _passes(text) >= passes and _is_idle(text), seconds=120 + 25 * passes)


def _passes(text: str) -> int:
    return text.count("GC'ing unscheduled pods which are terminating")


def _is_idle(text: str) -> bool:
    """The last part of a pass takes one pod after the other, and says what came of each."""
    begun = text.count("Found unscheduled terminating Pod")
    return begun == text.count("Forced deletion of unscheduled") + text.count("Failed to delete unscheduled")


async def _run_ours(server: Server, world: World) -> None:
    settings = Settings(threshold=world.threshold, period_seconds=0.5, quarantine_seconds=QUARANTINE_SECONDS)
    async with connect(server) as client, running(client, settings) as collector:
        await look_again(collector, 1)
        for state in world.states:
            if state.then is not None:
                await state.then(client, state)
        await until(collector.plan_once, lambda plan: not plan.victims and not plan.later, seconds=180)
        await look_again(collector)
