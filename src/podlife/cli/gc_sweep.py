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
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from podlife.aio import cancel_and_wait, spawn
from podlife.cli import loop
from podlife.cli.connecting import ConnectionOptions, connected, load_connection
from podlife.cli.gc_archive import Archiving
from podlife.cli.gc_finalizers_sweep import FinalizerPart
from podlife.cli.gc_once import archiving_steps, recording
from podlife.cli.gc_output import counted, format_plan, reasons_of
from podlife.cli.gc_progress import shown_progress
from podlife.cli.gc_summary import Result, tell
from podlife.client import Client, Connection
from podlife.clock import SystemClock
from podlife.errors import ConfigError
from podlife.events import Recorder
from podlife.podgc import Selection, Settings
from podlife.podgc.finalizers import HeldPod
from podlife.podgc.policies.guards import Guard, Moment
from podlife.podgc.policies.guards_plan import hold_back, without_held
from podlife.podgc.policies.owner_plan import set_waiting_apart
from podlife.podgc.policy import Plan, Victim, due_now
from podlife.podgc.removal import Outcome, Removal, event_about, regarding_pod
from podlife.podgc.sweep import Sweep, plan_once

if TYPE_CHECKING:
    from podlife.podgc.archive import Archive

__all__ = ["run_sweep"]

# More than fit on a screen are no help to somebody who is to say yes or no.
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
            agreed, held = loop.run(_make_plan(job))
            shown = hold_back(due_now(agreed, settings), settings, Moment(0.0, SystemClock().now()))
            if not (_show(shown) or held):
                # Whoever waits for the sweep must see that something stays.
                return 1 if shown.held_back else 0
            if not _is_agreed(shown, finalizers, held):
                # Whoever waits for the sweep must see that there was none.
                print("Nothing was deleted.")
                return 1
            agreed = without_held(agreed, shown.held_back)
            if finalizers is not None:
                finalizers.agree(held, agreed)
        loop.run(_sweep(job, agreed, result))
    except KeyboardInterrupt:
        result.is_interrupted = result.is_cut = True
    told = tell(result, job.connection)
    said, problems, code = [*told.said], [*told.problems], told.code
    if finalizers is not None:
        said += finalizers.said()
        problems += finalizers.problems(job.connection)
        code = code or int(not finalizers.is_complete)
    for line in said:
        print(line)
    for problem in problems:
        print(f"podlife: {problem}", file=sys.stderr)
    return code


async def _make_plan(job: _Job) -> tuple[Plan, list[HeldPod]]:
    """With the pods whose finalizers would be taken off."""
    async with connected(job.options, job.connection) as client:
        plan = await _plan(job, client)
        return plan, [] if job.finalizers is None else await job.finalizers.look(client)


async def _plan(job: _Job, client: Client) -> Plan:
    """Whoever waits for an owner is not to go yet, and no reason to call a sweep incomplete."""
    plan = await plan_once(client, job.settings, job.selection)
    return await set_waiting_apart(plan, client, job.settings, SystemClock())


def _show(plan: Plan) -> bool:
    """Show what would go; says whether there is anything to ask about."""
    few = replace(plan, victims=plan.victims[:_MOST_SHOWN])
    sys.stdout.write(format_plan(few, "table", SystemClock().now()))
    if more := len(plan.victims) - len(few.victims):
        print(f"… and {counted(more, 'more pod')}: `podlife gc plan` shows all of them.")
    return bool(plan.victims or plan.later)


def _is_agreed(plan: Plan, finalizers: FinalizerPart | None, held: Sequence[HeldPod]) -> bool:
    number, later = len(plan.victims), sum(len(item.pods) for item in plan.later)
    parts = [f"{counted(number)} now ({reasons_of(plan.victims)})"] if number else []
    if waiting := sum(len(item.pods) for item in plan.held_back if item.refusal.guard is Guard.PER_MINUTE):
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
    async with connected(job.options, job.connection) as client:
        plan = await _plan(job, client)
        for waits in plan.waiting:
            result.waiting.setdefault(waits.what, []).append(waits.victim.pod.key)
        plan = _both(plan, agreed) if agreed else plan
        stopping = asyncio.Event()
        async with (
            recording(client) as recorder,
            archiving_steps(client, job.archiving, job.archive) as steps,
        ):

            def report(victim: Victim, removal: Removal) -> None:
                result.note(victim, removal)
                if (event := event_about(victim, removal)) is not None:
                    recorder.event(event[0], "Normal", "PodGarbageCollected", event[1])
                if removal.outcome is Outcome.KEPT:
                    why = f"podlife-gc: {removal.why}"
                    recorder.event(regarding_pod(victim), "Warning", "PodNotCollected", why)

            sweep = Sweep(client, job.settings, SystemClock(), report=report, steps=steps)
            result.summary, result.has_waited, result.has_begun = sweep.summary, bool(plan.later), True

            def stop() -> None:
                result.is_interrupted = True
                stopping.set()
                sweep.stop()
                if job.finalizers is not None:
                    job.finalizers.stop()
                for step in steps:
                    step.withdraw()

            with loop.stopped_by_signals(stop):
                try:
                    if job.finalizers is not None:
                        await job.finalizers.begin(client, steps)
                    with shown_progress() as show:
                        await sweep.run(show, plan=plan)
                    if job.finalizers is not None:
                        await job.finalizers.finish(recorder)
                finally:
                    result.seconds = perf_counter() - started
                await _flush(recorder, stopping)


def _both(now: Plan, agreed: Plan) -> Plan:
    """What is still to be collected of what was agreed to."""
    pods = [victim.pod for victim in agreed.victims] + [pod for item in agreed.later for pod in item.pods]
    uids = {pod.metadata.uid for pod in pods}
    later = (
        replace(item, pods=tuple(pod for pod in item.pods if pod.metadata.uid in uids)) for item in now.later
    )
    return replace(
        now,
        victims=tuple(victim for victim in now.victims if victim.pod.metadata.uid in uids),
        later=tuple(item for item in later if item.pods),
    )


async def _flush(recorder: Recorder, stopping: asyncio.Event) -> None:
    """Wait for the events to be sent, and not for long once it is told to stop."""
    flushing = spawn(recorder.flush(seconds=_FLUSH_SECONDS), name="flush", on_failure=lambda _: None)
    waiting = spawn(stopping.wait(), name="stop", on_failure=lambda _: None)
    try:
        await asyncio.wait((flushing, waiting), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((flushing,), timeout=_SHORT_FLUSH_SECONDS)
    finally:
        await cancel_and_wait(flushing, waiting)
