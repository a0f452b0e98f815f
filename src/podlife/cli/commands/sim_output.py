"""Output of `podlife sim`: progress, on one line of a terminal or as periodic lines, and a summary."""

from __future__ import annotations

import asyncio
import sys

from podlife.api.durations import format_duration
from podlife.cli.output import counted
from podlife.daemons.simulation import SimulationSettings
from podlife.kubelet.hollow import HollowNodes, HollowProgress, Scenario, percentile

# Clears the current line of a terminal.
_CLEAR = "\r\x1b[K"
_TERMINAL_SECONDS, _LINE_SECONDS = 0.25, 10.0


class ConsoleReporter:
    """The summary goes to standard output, everything else to standard error."""

    def __init__(self, settings: SimulationSettings) -> None:
        self._settings = settings

    async def show_progress(self, fleet: HollowNodes) -> None:
        """Run until cancelled. Without a terminal, print only changes, and rarely."""
        is_terminal = sys.stderr.isatty()
        last = ""
        try:
            while True:
                await asyncio.sleep(_TERMINAL_SECONDS if is_terminal else _LINE_SECONDS)
                line = state_of(fleet)
                if is_terminal:
                    sys.stderr.write(f"{_CLEAR}{line}")
                    sys.stderr.flush()
                elif line != last:
                    print(line, file=sys.stderr, flush=True)
                last = line
        finally:
            if is_terminal and last:
                sys.stderr.write(_CLEAR)
                sys.stderr.flush()

    def nodes_ready(self) -> None:
        nodes = self._settings.nodes
        _print(f"{counted(nodes, 'node')} {'is' if nodes == 1 else 'are'} ready")

    def pods_created(self) -> None:
        _print(f"{counted(self._settings.pods, 'pod')} created in namespace {self._settings.namespace}")

    def out_of_time(self, created: int) -> None:
        _print(
            f"only {created} of {counted(self._settings.pods, 'pod')} created within "
            f"{format_duration(self._settings.duration_seconds)}: increase --duration"
        )

    def cleaning_up(self) -> None:
        _print("deleting the created nodes and pods; press Ctrl-C again to keep them")

    def left_behind(self, reason: str, run_name: str) -> None:
        _print(
            f"cleanup incomplete: {reason}; pods of this run have the label "
            f"sim.podlife.dev/run={run_name}, nodes sim.podlife.dev/fleet={self._settings.name}"
        )

    def finished(self, fleet: HollowNodes, created: int, seconds: float) -> None:
        print(summary_of(fleet.tally, self._settings.nodes, created, seconds), flush=True)


def _print(line: str) -> None:
    # Overwrites the progress line of a terminal.
    print(f"{_CLEAR if sys.stderr.isatty() else ''}{line}", file=sys.stderr, flush=True)


def state_of(fleet: HollowNodes) -> str:
    tally = fleet.tally
    parts = [f"nodes: {fleet.ready} of {len(fleet.nodes)} ready"]
    if tally.away:
        parts.append(f"{tally.away} down")
    phases = ", ".join(f"{count} {phase}" for phase, count in sorted(tally.phases.items()))
    parts.append(f"pods: {phases or 'none'}")
    if tally.restarts:
        parts.append(counted(tally.restarts, "restart"))
    if tally.gone:
        parts.append(f"{tally.gone} deleted")
    return "; ".join(parts)


def summary_of(tally: HollowProgress, nodes: int, created: int, seconds: float) -> str:
    lines = [f"{counted(nodes, 'node')} for {format_duration(seconds)}; {counted(created, 'pod')} created"]
    started = tally.start_seconds
    if len(started):
        lines.append(
            f"{counted(len(started), 'pod')} started: created to Running p50 {percentile(started, 0.5):.2f} s, "
            f"p99 {percentile(started, 0.99):.2f} s, longest {max(started):.2f} s"
        )
    if tally.restarts or tally.outages:
        lines.append(
            f"{counted(tally.restarts, 'container restart')}; {counted(tally.outages, 'node outage')}"
        )
    return "\n".join(lines)


def describe_scenario(scenario: Scenario) -> str:
    rules = {"pods": scenario.pods, "images": scenario.images, "nodes": scenario.nodes}
    counts = [f"{counted(len(each), 'rule')} for {of}" for of, each in rules.items() if each]
    return f"valid: {', '.join(counts) or 'no rules'}; seed {scenario.seed}"
