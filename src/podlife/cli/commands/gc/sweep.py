"""`podlife gc sweep`: plan, confirm, execute once, and report the results.

A confirmed plan limits what is deleted: the session plans again and adds nothing to it. The first Ctrl-C lets requests
in flight finish and sends nothing more, a second one exits immediately. Results are printed in any case.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from podlife.aio import cancel_and_wait, spawn
from podlife.cli.archive_options import Archiving
from podlife.cli.commands.gc.held_pods import problems_of, removal_lines
from podlife.cli.commands.gc.once import archiving_steps, is_agreed, prepare_to_ask, recording
from podlife.cli.commands.gc.output import Shown, format_plan, reasons_of
from podlife.cli.commands.gc.progress import shown_progress
from podlife.cli.commands.gc.summary import Result, summarize
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.output import counted, printable
from podlife.client import Client, Connection, WithdrawnError
from podlife.clock import SystemClock
from podlife.daemons import event_loop
from podlife.events import Recorder
from podlife.podgc import (
    Deletions,
    Finalizers,
    GcSession,
    Outcome,
    Plan,
    Removal,
    Selection,
    Settings,
    Victim,
)
from podlife.podgc.finalizers.remover import event_of
from podlife.podgc.removal import event_about, regarding_pod
from podlife.podgc.session import Phase
from podlife.podgc.summary import FinalizerRemoval

if TYPE_CHECKING:
    from podlife.podgc.archive import Archive, ArchiveStep

# A confirmation prompt should fit on one screen.
_MAX_SHOWN = 20
# Maximum time to send the events, normally and after Ctrl-C.
_FLUSH_SECONDS, _SHORT_FLUSH_SECONDS = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class _Sweep:
    options: ConnectionOptions
    connection: Connection
    settings: Settings
    selection: Selection
    archiving: Archiving | None
    archive: Archive | None
    # Finalizers to remove from pods whose node no longer exists.
    finalizers: frozenset[str]

    def session(
        self, client: Client, steps: Sequence[ArchiveStep] = (), report: _Reports | None = None
    ) -> GcSession:
        on_removal, on_finalizers = (None, None) if report is None else (report.removal, report.finalizers)
        phases: list[Phase] = [Deletions(on_removal)]
        if self.finalizers:
            phases.append(Finalizers(self.finalizers, on_finalizers))
        clock = SystemClock()
        return GcSession(
            client, self.settings, phases=phases, selection=self.selection, clock=clock, steps=steps
        )


@dataclass(frozen=True, slots=True)
class _Reports:
    """Records the results and sends an event for each."""

    result: Result
    recorder: Recorder

    def removal(self, victim: Victim, removal: Removal) -> None:
        self.result.record(victim, removal)
        if (event := event_about(victim, removal)) is not None:
            self.recorder.event(event[0], "Normal", "PodGarbageCollected", event[1])
        if removal.outcome is Outcome.KEPT:
            why = f"podlife-gc: {removal.why}"
            self.recorder.event(regarding_pod(victim), "Warning", "PodNotCollected", why)

    def finalizers(self, removal: FinalizerRemoval) -> None:
        regarding, message = event_of(removal)
        self.recorder.event(regarding, "Normal", "FinalizerRemoved", message)


def run_sweep(
    options: ConnectionOptions,
    settings: Settings,
    selection: Selection,
    *,
    is_confirmed: bool,
    archiving: Archiving | None = None,
    remove_finalizers: frozenset[str] = frozenset(),
) -> int:
    """Sweep once; returns the exit code. Raises PodlifeError if it cannot start."""
    prepare_to_ask(is_confirmed=is_confirmed)
    connection = load_connection(options)
    # Before the prompt: an archive that cannot be used keeps every pod.
    archive = archiving.open(SystemClock()) if archiving else None
    sweep = _Sweep(options, connection, settings, selection, archiving, archive, remove_finalizers)
    result = Result()
    confirmed: Plan | None = None
    try:
        if not is_confirmed:
            confirmed = event_loop.run(_planned(sweep))
            if not (_show(confirmed, sweep) or confirmed.finalizers):
                # Scripts must notice that pods stay.
                return 1 if confirmed.held_back else 0
            if not _confirm(confirmed, sweep):
                print("Nothing was deleted.")
                return 1
        event_loop.run(_swept(sweep, confirmed, result))
    except KeyboardInterrupt:
        result.is_interrupted = result.is_cut = True
    return _render(result, sweep)


def _render(result: Result, sweep: _Sweep) -> int:
    """Print the results; returns the exit code."""
    report = summarize(result, sweep.connection, Shown(sweep.settings, sweep.selection.namespace))
    finalizers = result.summary.finalizers
    for line in (*report.lines, *removal_lines(finalizers)):
        print(printable(line))
    for problem in (*report.problems, *problems_of(finalizers, sweep.connection)):
        print(printable(f"podlife: {problem}"), file=sys.stderr)
    return report.code


async def _planned(sweep: _Sweep) -> Plan:
    async with connected(sweep.options, sweep.connection) as client:
        return await sweep.session(client).plan()


def _show(plan: Plan, sweep: _Sweep) -> bool:
    """Show what would be deleted; returns whether there is anything to confirm."""
    few = replace(plan, victims=plan.victims[:_MAX_SHOWN])
    shown = Shown(sweep.settings, sweep.selection.namespace)
    sys.stdout.write(format_plan(few, "table", SystemClock().now(), shown))
    if more := len(plan.victims) - len(few.victims):
        print(f"… and {counted(more, 'more pod')}: `podlife gc plan` shows all of them.")
    return bool(plan.victims or plan.later)


def _confirm(plan: Plan, sweep: _Sweep) -> bool:
    number, later = len(plan.victims), sum(len(item.pods) for item in plan.later)
    parts = [f"{counted(number)} now ({reasons_of(plan.victims)})"] if number else []
    if waiting := sum(len(item.pods) for item in plan.held_back if item.is_for_a_minute):
        parts.append(f"up to {waiting} more as the minute has room")
    if later:
        parts.append(f"{counted(later)} after quarantine")
    actions = [f"Delete {' and '.join(parts)}"] if parts else []
    if plan.finalizers:
        names = ", ".join(sorted(sweep.finalizers))
        actions.append(f"take {names} off {counted(len(plan.finalizers))} of nodes that are gone")
    question = ", and ".join(actions)
    return is_agreed(f"{question[0].upper()}{question[1:]}?")


async def _swept(sweep: _Sweep, confirmed: Plan | None, result: Result) -> None:
    started = perf_counter()
    async with (
        connected(sweep.options, sweep.connection) as client,
        recording(client) as recorder,
        archiving_steps(client, sweep.archiving, sweep.archive) as steps,
    ):
        stopping = asyncio.Event()
        session = sweep.session(client, steps, _Reports(result, recorder))
        result.summary = session.summary

        def stop() -> None:
            result.is_interrupted = True
            stopping.set()
            session.stop()
            for step in steps:
                step.withdraw()

        with event_loop.stopped_by_signals(stop), suppress(WithdrawnError):
            try:
                with shown_progress() as show:
                    await session.execute(confirmed, show)
            finally:
                result.seconds, result.has_begun = perf_counter() - started, session.summary.has_begun
            await _flush(recorder, stopping)


async def _flush(recorder: Recorder, stopping: asyncio.Event) -> None:
    """Wait until the events are sent, but only briefly after a stop."""
    flushing = spawn(recorder.flush(seconds=_FLUSH_SECONDS), name="flush", on_failure=lambda _: None)
    waiting = spawn(stopping.wait(), name="stop", on_failure=lambda _: None)
    try:
        await asyncio.wait((flushing, waiting), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((flushing,), timeout=_SHORT_FLUSH_SECONDS)
    finally:
        await cancel_and_wait(flushing, waiting)
