"""`podlife gc sweep`: ask, delete once, show how far it is, and say what came of it.

Between the question and the deletion pods and nodes may change: what was agreed to is decided about once more,
and nothing is added to it. The first Ctrl-C lets the calls on the wire finish and sends nothing more; a second one
ends it at once. What was done is told in any case.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from podlife.aio import cancel_and_wait, spawn
from podlife.cli.commands.gc.archive_options import Archiving
from podlife.cli.commands.gc.finalizers_sweep import FinalizerPart
from podlife.cli.commands.gc.once import archiving_steps, recording
from podlife.cli.commands.gc.output import (
    Shown,
    counted,
    format_plan,
    reasons_of,
)
from podlife.cli.commands.gc.progress import shown_progress
from podlife.cli.commands.gc.summary import Result, tell
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.printable import printable
from podlife.client import Connection, WithdrawnError
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.errors import ConfigError
from podlife.events import Recorder
from podlife.podgc import GcSession, Outcome, Plan, Removal, Selection, Settings, Victim
from podlife.podgc.finalizers.held_pods import HeldPod
from podlife.podgc.removal import event_about, regarding_pod

if TYPE_CHECKING:
    from podlife.podgc.archive import Archive

__all__ = ["run_sweep"]

# A confirmation prompt should fit on one screen.
_MOST_SHOWN = 20
# How long the events about what was done may take to be sent, and how long once somebody wants to leave.
_FLUSH_SECONDS, _SHORT_FLUSH_SECONDS = 5.0, 1.0


@dataclass(frozen=True, slots=True)
class _Job:
    options: ConnectionOptions
    connection: Connection
    settings: Settings
    selection: Selection
    archiving: Archiving | None
    archive: Archive | None
    finalizers: FinalizerPart | None


def run_sweep(
    options: ConnectionOptions,
    settings: Settings,
    selection: Selection,
    *,
    is_confirmed: bool,
    archiving: Archiving | None = None,
    remove_finalizers: frozenset[str] = frozenset(),
) -> int:
    """Sweep once; the exit code. Raises PodlifeError when it cannot even begin."""
    if not is_confirmed and not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask on: give --yes, or look first with --dry-run")
    # What goes wrong is in the summary.
    logging.getLogger("podlife").addHandler(logging.NullHandler())
    connection = load_connection(options)
    # Before anything is asked: an archive that cannot be used keeps every pod.
    archive = archiving.open(SystemClock()) if archiving else None
    finalizers = FinalizerPart(remove_finalizers, settings, selection) if remove_finalizers else None
    job = _Job(options, connection, settings, selection, archiving, archive, finalizers)
    result = Result()
    agreed: Plan | None = None
    try:
        if not is_confirmed:
            agreed, held = loop.run(_look(job))
            if not (_show(agreed, job) or held):
                # Whoever waits for the sweep must see that something stays.
                return 1 if agreed.held_back else 0
            if not _is_agreed(agreed, finalizers, held):
                # Whoever waits for the sweep must see that there was none.
                print("Nothing was deleted.")
                return 1
            if finalizers is not None:
                finalizers.agree(held, agreed)
        loop.run(_sweep(job, agreed, result))
    except KeyboardInterrupt:
        result.is_interrupted = result.is_cut = True
    told = tell(result, connection, Shown(settings, selection.namespace))
    said, problems, code = [*told.said], [*told.problems], told.code
    if finalizers is not None:
        said += finalizers.said()
        problems += finalizers.problems(connection)
        code = code or int(not finalizers.is_complete)
    for line in said:
        print(printable(line))
    for problem in problems:
        print(printable(f"podlife: {problem}"), file=sys.stderr)
    return code


async def _look(job: _Job) -> tuple[Plan, list[HeldPod]]:
    """The plan, and the pods whose finalizers would be taken off."""
    async with connected(job.options, job.connection) as client:
        session = GcSession(client, job.settings, selection=job.selection, clock=SystemClock())
        plan = await session.plan()
        return plan, [] if job.finalizers is None else await job.finalizers.look(client)


def _show(plan: Plan, job: _Job) -> bool:
    """Show what would go; says whether there is anything to ask about."""
    few = replace(plan, victims=plan.victims[:_MOST_SHOWN])
    shown = Shown(job.settings, job.selection.namespace)
    sys.stdout.write(format_plan(few, "table", SystemClock().now(), shown))
    if more := len(plan.victims) - len(few.victims):
        print(f"… and {counted(more, 'more pod')}: `podlife gc plan` shows all of them.")
    return bool(plan.victims or plan.later)


def _is_agreed(plan: Plan, finalizers: FinalizerPart | None, held: Sequence[HeldPod]) -> bool:
    number, later = len(plan.victims), sum(len(item.pods) for item in plan.later)
    parts = [f"{counted(number)} now ({reasons_of(plan.victims)})"] if number else []
    if waiting := sum(len(item.pods) for item in plan.held_back if item.is_for_a_minute):
        parts.append(f"up to {waiting} more as the minute has room")
    if later:
        parts.append(f"{counted(later)} after quarantine")
    asked = [f"Delete {' and '.join(parts)}"] if parts else []
    if finalizers is not None and held:
        asked.append(finalizers.question(held))
    question = ", and ".join(asked)
    try:
        answer = input(f"\n{question[0].upper()}{question[1:]}? [y/N] ")
    except EOFError:
        print()
        return False
    except KeyboardInterrupt:
        # What is said next stands on a line of its own.
        print()
        raise
    return answer.strip().lower() in ("y", "yes")


async def _sweep(job: _Job, agreed: Plan | None, result: Result) -> None:
    started = perf_counter()
    async with (
        connected(job.options, job.connection) as client,
        recording(client) as recorder,
        archiving_steps(client, job.archiving, job.archive) as steps,
    ):
        stopping = asyncio.Event()

        def report(victim: Victim, removal: Removal) -> None:
            result.note(victim, removal)
            if (event := event_about(victim, removal)) is not None:
                recorder.event(event[0], "Normal", "PodGarbageCollected", event[1])
            if removal.outcome is Outcome.KEPT:
                why = f"podlife-gc: {removal.why}"
                recorder.event(regarding_pod(victim), "Warning", "PodNotCollected", why)

        session = GcSession(
            client,
            job.settings,
            selection=job.selection,
            clock=SystemClock(),
            steps=steps,
            report=report,
        )
        result.summary = session.summary

        def stop() -> None:
            result.is_interrupted = True
            stopping.set()
            session.stop()
            if job.finalizers is not None:
                job.finalizers.stop()
            for step in steps:
                step.withdraw()

        with loop.stopped_by_signals(stop), suppress(WithdrawnError):
            try:
                if job.finalizers is not None:
                    await job.finalizers.begin(client, steps)
                with shown_progress() as show:
                    await session.execute(agreed, show)
                if job.finalizers is not None:
                    await job.finalizers.finish(recorder)
            finally:
                result.seconds, result.has_begun = perf_counter() - started, session.has_begun
            await _flush(recorder, stopping)


async def _flush(recorder: Recorder, stopping: asyncio.Event) -> None:
    """Wait for the events to be sent, and not for long once it is told to stop."""
    flushing = spawn(recorder.flush(seconds=_FLUSH_SECONDS), name="flush", on_failure=lambda _: None)
    waiting = spawn(stopping.wait(), name="stop", on_failure=lambda _: None)
    try:
        await asyncio.wait((flushing, waiting), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((flushing,), timeout=_SHORT_FLUSH_SECONDS)
    finally:
        await cancel_and_wait(flushing, waiting)
