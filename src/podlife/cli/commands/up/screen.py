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

from podlife.cli.commands.up.lines import (
    Lines,
    in_order,
    states_of,
    summary_of,
)
from podlife.cli.commands.up.terminal import QuietTerminal
from podlife.localcluster.cluster_state import World, why_terminating

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live
    from rich.text import Text

__all__ = ["Screen", "draw"]

_LINE_SECONDS, _VIEW_SECONDS = 1.0, 0.25
# A terminal has so much room and no more.
_MOST_NODES, _MOST_PODS = 12, 8
# An explanation with less room says nothing.
_LEAST_EXPLANATION = 30


class Screen:
    def __init__(self) -> None:
        self._live: Live | None = None
        self.terminal = QuietTerminal()

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
        self.terminal = QuietTerminal(live.refresh)
        try:
            with self.terminal.entered():
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
    parts.append(Text(summary_of(world.states, world.gone_count), style="dim"))
    return Group(*parts)


def _nodes(world: World) -> _Rows:
    rows = _Rows("NODE", "STATE", "PODS")
    ordered = sorted(world.nodes.items(), key=lambda each: (each[1].is_ready, in_order(each[0])))
    shown = dict(sorted(ordered[:_MOST_NODES], key=lambda each: in_order(each[0])))
    for name, node in shown.items():
        pods = states_of(world.on_node(name)) or "none"
        rows.add(name, node.state, pods, style="green" if node.is_ready else "red")
    if len(world.nodes) > len(shown):
        ready = sum(node.is_ready for node in world.nodes.values())
        rows.add(f"… of {len(world.nodes)}", f"{ready} ready", "")
    if waiting := world.on_node(""):
        rows.add("(none yet)", "", states_of(waiting))
    return rows


def _terminating(world: World) -> _Rows:
    rows = _Rows("TERMINATING", "NODE", "WHY IT IS STILL THERE")
    pods = sorted(world.terminating.values(), key=lambda each: each.name)
    for pod in pods[:_MOST_PODS]:
        rows.add(pod.name, pod.spec.node_name, why_terminating(pod, world))
    if len(pods) > _MOST_PODS:
        rows.add(f"… and {len(pods) - _MOST_PODS} more", "", "")
    return rows


def _gone(world: World) -> _Rows:
    rows = _Rows("GONE", "AT", "WHY")
    for each in list(world.gone)[-_MOST_PODS:]:
        rows.add(each.pod.name, f"{each.at.astimezone():%H:%M:%S}", world.why_gone(each))
    return rows


class _Rows:
    """A name, a word about it, and an explanation, in columns.

    A name is shown whole, since it is there to be typed: where that leaves no room for the explanations they have a
    line of their own. Only an explanation is ever cut."""

    def __init__(self, *titles: str) -> None:
        self._rows: list[tuple[tuple[str, ...], str]] = [(titles, "bold")]

    def add(self, *cells: str, style: str = "") -> None:
        """`style` is that of the second cell."""
        self._rows.append((cells, style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        first, second = (max(len(cells[column]) for cells, _ in self._rows) + 2 for column in (0, 1))
        has_room = options.max_width - first - second >= _LEAST_EXPLANATION
        for number, (cells, style) in enumerate(self._rows):
            is_title = number == 0
            line = Text(no_wrap=True, overflow="ellipsis", style="bold" if is_title else "")
            line.append(cells[0].ljust(first if has_room else len(cells[0]) + 2))
            line.append(cells[1].ljust(second), style="" if is_title else style)
            if has_room:
                line.append(cells[2])
            yield line
            if not has_room and not is_title and cells[2]:
                yield Text(f"  {cells[2]}", no_wrap=True, overflow="ellipsis")
