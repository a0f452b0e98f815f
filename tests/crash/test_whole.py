"""`kill -9` of anything, at any moment, on a cluster of real processes: the API server, the controllers, a node's
agent, the supervisor of a container, what forks those, the supervisor of all of them; while users scale, change and
delete.

After it every wanted replica runs exactly once, no process runs without a pod, nothing is stuck, and no pod's name,
so no ordinal of a StatefulSet, ever ran twice at the same time. A few rounds; `make crash` asks for more. A run that
failed says its seed: PODLIFE_CRASH_SEED plays the same kills and changes again, at the machine's own times. With
CI=true they are always the same.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import pytest

from podlife.client import DEPLOYMENTS, STATEFUL_SETS, DeleteOptions
from tests.crash.whole_world import world_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

ROUNDS = int(os.environ.get("PODLIFE_CRASH_ROUNDS", "3"))
ALWAYS = 20260105
SEED = int(
    os.environ.get("PODLIFE_CRASH_SEED")
    or (ALWAYS if os.environ.get("CI") == "true" else random.randrange(2**32))
)
# So many rounds may disturb each other before everything must be as it is wanted.
TOGETHER = 5


async def test_whoever_is_killed_everything_wanted_runs_once_and_nothing_else_does(tmp_path: Path) -> None:
    async with world_in(tmp_path, SEED) as world:
        await world.create()
        for number in range(1, ROUNDS + 1):
            world.story.append(f"round {number}")
            await world.change()
            # Into whatever they are doing by then.
            await asyncio.sleep(world.random.uniform(0, 0.7))
            await world.kill(is_long=ROUNDS > TOGETHER)
            world.check_never_twice()
            if number % TOGETHER == 0:
                await world.settle()
        await world.settle()
        for ref, name in ((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")):
            options = DeleteOptions(propagation_policy="Foreground")
            await world.client.delete(ref, name, "default", options=options)
        await world.until_empty()
        assert not world.processes(), world.explain()
