"""Where `podlife up` shows what happens: a live view on a terminal, lines everywhere else."""

from __future__ import annotations

import asyncio

from podlife.cli.up_output import Lines
from podlife.cli.up_world import World

__all__ = ["Screen"]

_LINE_SECONDS = 1.0


class Screen:
    def say(self, line: str) -> None:
        print(line, flush=True)

    async def show(self, world: World) -> None:
        """Until it is cancelled."""
        lines = Lines(world, self.say)
        while True:
            lines.look()
            await asyncio.sleep(_LINE_SECONDS)
