"""Where `podlife up` shows what happens: a live view on a terminal, lines everywhere else.

The view has nodes with their pods by state, what is terminating and why, and what has gone; lines that are said then
stand above it. It is drawn only when something has changed, or a countdown runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from podlife.cli.up_output import Lines, in_order, states_of, summary_of
from podlife.cli.up_world import World, why_terminating

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

__all__ = ["Screen", "draw"]

_LINE_SECONDS, _VIEW_SECONDS = 1.0, 0.25
# A terminal has so much room and no more.
_MOST_NODES, _MOST_PODS = 12, 8


class Screen:
    def __init__(self) -> None:
        self._live: Live | None = None

    def say(self, line: str) -> None:
        try:
            if self._live is None:
                print(line, flush=True)
            else:
                self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
        except OSError:
            self._fall_silent()

    async def show(self, world: World) -> None:
        """Until it is cancelled."""
        if sys.stdout.isatty():
            try:
                await self._view(world)
            except OSError:
                self._fall_silent()
        lines = Lines(world, self.say)
        while True:
            lines.look()
            await asyncio.sleep(_LINE_SECONDS)

    def _fall_silent(self) -> None:
        """A terminal that was closed, a pipe that nobody reads: the cluster goes on, and so does its orderly end."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    async def _view(self, world: World) -> None:
        # Loading it takes a tenth of a second, which who reads lines need not wait for.
        from rich.live import Live

        seen = -1
        live = self._live = Live(draw(world), auto_refresh=False, transient=True)
        try:
            live.start()
            while True:
                if world.changes != seen or world.terminating or not world.is_live:
                    seen = world.changes
                    live.update(draw(world), refresh=True)
                await asyncio.sleep(_VIEW_SECONDS)
        finally:
            self._live = None
            # What cannot be wiped any more must not stand in the way of a cancellation.
            with contextlib.suppress(OSError):
                live.stop()


def draw(world: World) -> RenderableType:
    """The world as it is now."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(), _nodes(world)]
    if world.terminating:
        parts += [Text(), _terminating(world)]
    if world.gone:
        parts += [Text(), _gone(world)]
    if not world.is_live:
        parts.append(Text("the API server does not answer: this is what it said last", style="red"))
    parts.append(Text(summary_of(world.states, world.gone_by_reason.total()), style="dim"))
    return Group(*parts)


def _nodes(world: World) -> Table:
    table = _table("NODE", "STATE", "PODS")
    ordered = sorted(world.nodes.items(), key=lambda each: (each[1].is_ready, in_order(each[0])))
    shown = dict(sorted(ordered[:_MOST_NODES], key=lambda each: in_order(each[0])))
    for name, node in shown.items():
        style = "green" if node.is_ready else "red"
        table.add_row(name, f"[{style}]{node.state}[/{style}]", states_of(world.on_node(name)) or "none")
    if len(world.nodes) > len(shown):
        ready = sum(node.is_ready for node in world.nodes.values())
        table.add_row(f"… of {len(world.nodes)}", f"{ready} ready", "")
    if waiting := world.on_node(""):
        table.add_row("(none yet)", "", states_of(waiting))
    return table


def _terminating(world: World) -> Table:
    table = _table("TERMINATING", "NODE", "WHY IT IS STILL THERE")
    pods = sorted(world.terminating.values(), key=lambda each: each.name)
    for pod in pods[:_MOST_PODS]:
        table.add_row(pod.name, pod.spec.node_name, why_terminating(pod, world))
    if len(pods) > _MOST_PODS:
        table.add_row(f"… and {len(pods) - _MOST_PODS} more", "", "")
    return table


def _gone(world: World) -> Table:
    table = _table("GONE", "AT", "WHY")
    for each in list(world.gone)[-_MOST_PODS:]:
        table.add_row(each.pod, f"{each.at.astimezone():%H:%M:%S}", each.why)
    return table


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
