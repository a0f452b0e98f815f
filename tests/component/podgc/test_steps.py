"""What must come before a deletion: a step that does not let a pod go keeps it, and nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podlife.cli.commands.gc.summary import Result, tell
from podlife.client import Connection
from podlife.events import Recorder
from podlife.podgc import Collector, Outcome, Settings
from podlife.podgc.plan import Victim
from podlife.podgc.session import Deletions, GcSession
from podlife.testing import virtual_time
from tests.component.podgc.world import World, running, serve


class Doubt:
    """Lets nobody of these names go."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.asked: list[str] = []

    async def __call__(self, victim: Victim) -> str:
        name = victim.pod.metadata.name
        self.asked.append(name)
        return "the shelf is full" if name in self.names else ""


async def build(world: World) -> None:
    await world.node()
    await world.pod("unscheduled", phase="Pending", node="", is_terminating=True)
    for name in ("a", "b", "c"):
        await world.pod(name, phase="Succeeded")


@virtual_time
async def test_a_sweep_leaves_what_a_step_keeps_unmarked_and_is_not_complete(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await build(world)
        result = Result(has_begun=True)
        doubt = Doubt("a", "unscheduled")
        how = Settings(threshold=1)
        session = GcSession(
            world.client, how, clock=world.clock, phases=[Deletions(result.note)], steps=[doubt]
        )
        result.summary = summary = await session.execute()
        assert await world.left() == ["a", "c", "unscheduled"]
        assert world.patched() == []
        assert (summary.outcomes[Outcome.KEPT], summary.is_complete) == (2, False)
        told = tell(result, Connection("https://example"))
        assert told.problems == ["2 pods not deleted (default/a, default/unscheduled): the shelf is full"]
        assert told.code == 1


@virtual_time
async def test_the_collector_asks_again_about_what_a_step_keeps_while_others_go(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await build(world)
        doubt = Doubt("a")
        recorder = Recorder(world.admin, "podlife-gc", clock=world.clock)
        collector = Collector(
            world.client, Settings(threshold=1), clock=world.clock, recorder=recorder, steps=[doubt]
        )
        async with running(collector):
            await asyncio.sleep(10)
            assert await world.left() == ["a", "c"]
            # At 0, 1, 3 and 7 seconds.
            assert doubt.asked.count("a") == 4
            doubt.names.clear()
            await asyncio.sleep(10)
            assert await world.left() == ["c"]
