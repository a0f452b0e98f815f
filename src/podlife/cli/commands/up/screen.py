"""The display of `podlife up`: a live view on a terminal, lines everywhere else.

The view shows nodes with their pods by state, what is terminating and why, and what has been removed; other lines are
printed above it. It is redrawn only when something has changed, or a countdown runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from podlife.cli.commands.up.lines import (
    ChangeLines,
    Welcome,
    command_for,
    in_order,
    program,
    states_of,
    summary_of,
)
from podlife.cli.commands.up.terminal import QuietTerminal
from podlife.cli.output import counted
from podlife.localcluster.cluster_state import ClusterState, why_terminating
from podlife.localcluster.state_dir import StateDir, age_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live
    from rich.text import Text

    from podlife.localcluster.session import StartedCluster

_LINE_SECONDS, _VIEW_SECONDS = 1.0, 0.25
# What fits on a terminal.
_MOST_NODES, _MOST_PODS = 12, 8
# An explanation with fewer columns is unreadable.
_LEAST_EXPLANATION = 30


class Screen:
    def __init__(self) -> None:
        self._live: Live | None = None
        self.terminal = QuietTerminal()

    def started(self, cluster: StartedCluster) -> None:
        self.say(Welcome(cluster, program()).text(age_seconds()))
        if left := sorted(cluster.other_nodes, key=in_order):
            self.say(f"of earlier, and not started here: {', '.join(left[:10])}")

    def stopping(self) -> None:
        self.say("stopping: pods are given their grace; Ctrl-C once more ends them at once")

    def pods_left(self, count: int) -> None:
        self.say(f"{counted(count)} to end")

    def stopped(self, state_dir: StateDir) -> None:
        self.say(f"stopped; `{command_for(state_dir, 'up')}` goes on where it was (data: {state_dir.path})")

    def restore(self) -> None:
        self.terminal.restore()

    def say(self, line: str) -> None:
        try:
            if self._live is None:
                print(line, flush=True)
            else:
                self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
        except OSError:
            self._fall_silent()

    async def show(self, state: ClusterState) -> None:
        """Run until cancelled."""
        if sys.stdout.isatty():
            try:
                await self._view(state)
            except OSError:
                self._fall_silent()
        lines = ChangeLines(state, self.say)
        while True:
            lines.look()
            await asyncio.sleep(_LINE_SECONDS)

    def _fall_silent(self) -> None:
        """The terminal or pipe was closed: the cluster continues, and will be stopped in order."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    async def _view(self, state: ClusterState) -> None:
        # Importing it takes a tenth of a second, which only the live view needs.
        from rich.live import Live

        seen = -1
        live = self._live = Live(draw(state), auto_refresh=False, transient=True)
        self.terminal = QuietTerminal(live.refresh)
        try:
            with self.terminal.entered():
                live.start()
                while True:
                    if state.changes != seen or state.terminating or not state.is_live:
                        seen = state.changes
                        live.update(draw(state), refresh=True)
                    await asyncio.sleep(_VIEW_SECONDS)
        finally:
            self._live = None
            # A view that cannot be cleared must not prevent cancellation.
            with contextlib.suppress(OSError):
                live.stop()


def draw(state: ClusterState) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(), _nodes(state)]
    if state.terminating:
        parts += [Text(), _terminating(state)]
    if state.gone:
        parts += [Text(), _gone(state)]
    if not state.is_live:
        parts.append(Text("the API server does not answer: this is what it said last", style="red"))
    parts.append(Text(summary_of(state.states, state.gone_count), style="dim"))
    return Group(*parts)


def _nodes(state: ClusterState) -> _Rows:
    rows = _Rows("NODE", "STATE", "PODS")
    ordered = sorted(state.nodes.items(), key=lambda each: (each[1].is_ready, in_order(each[0])))
    shown = dict(sorted(ordered[:_MOST_NODES], key=lambda each: in_order(each[0])))
    for name, node in shown.items():
        pods = states_of(state.on_node(name)) or "none"
        rows.add(name, node.state, pods, style="green" if node.is_ready else "red")
    if len(state.nodes) > len(shown):
        ready = sum(node.is_ready for node in state.nodes.values())
        rows.add(f"… of {len(state.nodes)}", f"{ready} ready", "")
    if waiting := state.on_node(""):
        rows.add("(none yet)", "", states_of(waiting))
    return rows


def _terminating(state: ClusterState) -> _Rows:
    rows = _Rows("TERMINATING", "NODE", "WHY IT IS STILL THERE")
    pods = sorted(state.terminating.values(), key=lambda each: each.name)
    for pod in pods[:_MOST_PODS]:
        rows.add(pod.name, pod.spec.node_name, why_terminating(pod, state))
    if len(pods) > _MOST_PODS:
        rows.add(f"… and {len(pods) - _MOST_PODS} more", "", "")
    return rows


def _gone(state: ClusterState) -> _Rows:
    rows = _Rows("GONE", "AT", "WHY")
    for each in list(state.gone)[-_MOST_PODS:]:
        rows.add(each.pod.name, f"{each.at.astimezone():%H:%M:%S}", state.why_gone(each))
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
