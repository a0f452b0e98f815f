"""`podlife gc sweep`: ask, delete once, show how far it is, and say what came of it.

Between the question and the deletion pods and nodes may change: what was agreed to is decided about once more,
and nothing is added to it. The first Ctrl-C lets the calls under way finish; what was done is told in any case.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import perf_counter

from podlife.aio import cancel_and_wait, spawn
from podlife.cli import loop
from podlife.cli.connecting import ConnectionOptions, connected, explained, load_connection
from podlife.cli.gc_output import counted, format_plan, reasons_of
from podlife.cli.gc_progress import shown_progress
from podlife.client import Client, Connection
from podlife.clock import SystemClock
from podlife.errors import ApiError, ConfigError, PodlifeError
from podlife.events import Recorder
from podlife.podgc import Selection, Settings
from podlife.podgc.policy import Plan, Victim
from podlife.podgc.removal import Outcome, Removal, event_about
from podlife.podgc.sweep import Summary, Sweep, plan_once

__all__ = ["run_sweep"]

# More than fit on a screen are no help to somebody who is to say yes or no.
_MOST_SHOWN = 20
_MOST_NAMED = 3
_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class _Job:
    options: ConnectionOptions
    connection: Connection
    settings: Settings
    selection: Selection


@dataclass(slots=True)
class _Result:
    summary: Summary
    deleted: list[Victim]
    seconds: float
    has_waited: bool
    is_interrupted: bool


def run_sweep(
    options: ConnectionOptions, settings: Settings, selection: Selection, *, is_confirmed: bool
) -> int:
    """Sweep once; the exit code. Raises PodlifeError when it cannot even begin."""
    if not is_confirmed and not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask on: give --yes, or look first with --dry-run")
    # What goes wrong is in the summary.
    logging.getLogger("podlife").addHandler(logging.NullHandler())
    job = _Job(options, load_connection(options), settings, selection)
    agreed: Plan | None = None
    if not is_confirmed:
        agreed = loop.run(_make_plan(job))
        if not _is_agreed(agreed):
            return 0
    return _tell(loop.run(_sweep(job, agreed)), job.connection)


async def _make_plan(job: _Job) -> Plan:
    async with connected(job.options, job.connection) as client:
        return await plan_once(client, job.settings, job.selection)


def _is_agreed(plan: Plan) -> bool:
    """Show what would go, and ask; with nothing to do there is nothing to ask."""
    few = replace(plan, victims=plan.victims[:_MOST_SHOWN])
    sys.stdout.write(format_plan(few, "table", SystemClock().now()))
    if more := len(plan.victims) - len(few.victims):
        print(f"… and {counted(more, 'more pod')}: `podlife gc plan` shows all of them.")
    number, later = len(plan.victims), sum(len(item.pods) for item in plan.later)
    if not number and not later:
        return False
    parts = [f"{counted(number)} now ({reasons_of(plan.victims)})"] if number else []
    if later:
        parts.append(f"{counted(later)} after quarantine")
    try:
        answer = input(f"\nDelete {' and '.join(parts)}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("Nothing was deleted.")
    return False


async def _sweep(job: _Job, agreed: Plan | None) -> _Result:
    started = perf_counter()
    clock = SystemClock()
    deleted: list[Victim] = []
    async with connected(job.options, job.connection) as client, _recorder(client) as recorder:

        def report(victim: Victim, removal: Removal) -> None:
            if removal.outcome.is_deletion:
                deleted.append(victim)
            if (event := event_about(victim, removal)) is not None:
                recorder.event(event[0], "Normal", "PodGarbageCollected", event[1])

        plan = await plan_once(client, job.settings, job.selection)
        plan = _both(plan, agreed) if agreed else plan
        sweep = Sweep(client, job.settings, clock, report=report)
        is_interrupted = False

        def stop() -> None:
            nonlocal is_interrupted
            is_interrupted = True
            sweep.stop()

        with shown_progress() as show, loop.stopped_by_signals(stop):
            summary = await sweep.run(show, plan=plan)
    return _Result(summary, deleted, perf_counter() - started, bool(plan.later), is_interrupted)


def _both(now: Plan, agreed: Plan) -> Plan:
    """What is still to be collected of what was agreed to."""
    pods = [victim.pod for victim in agreed.victims] + [pod for item in agreed.later for pod in item.pods]
    uids = {pod.metadata.uid for pod in pods}
    later = (
        replace(item, pods=tuple(pod for pod in item.pods if pod.metadata.uid in uids)) for item in now.later
    )
    return Plan(
        tuple(victim for victim in now.victims if victim.pod.metadata.uid in uids),
        tuple(item for item in later if item.pods),
        now.held,
    )


@asynccontextmanager
async def _recorder(client: Client) -> AsyncIterator[Recorder]:
    """Tells who deleted what, and why; that it cannot is no reason not to sweep."""
    recorder = Recorder(client, "podlife-gc", clock=SystemClock())
    task = spawn(recorder.run(), name="events", on_failure=lambda _: None)
    try:
        yield recorder
        await recorder.flush(seconds=5)
    finally:
        await cancel_and_wait(task)


def _tell(result: _Result, connection: Connection) -> int:
    """Say what came of it; the exit code."""
    summary, outcomes = result.summary, result.summary.outcomes
    print(_headline(result))
    for outcome, text in (
        (Outcome.HELD, "held by a finalizer, and gone when that is taken off"),
        (Outcome.MARKED, "deleted before and held by a finalizer: marked Failed"),
        (Outcome.GONE, "gone already"),
        (Outcome.REPLACED, "made anew under the same name meanwhile: left alone"),
    ):
        if outcomes[outcome]:
            print(f"  {counted(outcomes[outcome])} {text}")
    problems = list(_problems(result, connection))
    for problem in problems:
        print(f"podlife: {problem}", file=sys.stderr)
    if result.is_interrupted:
        return _INTERRUPTED
    return 1 if problems or not summary.is_complete else 0


def _headline(result: _Result) -> str:
    number = len(result.deleted)
    if not number:
        return (
            "Nothing was deleted."
            if result.is_interrupted or result.summary.failures
            else "Nothing to collect."
        )
    # Where it waited for a quarantine, the time tells nothing of its speed.
    rate = "" if result.has_waited else f", {number / result.seconds:.0f} a second"
    return f"{counted(number)} deleted ({reasons_of(result.deleted)}) in {result.seconds:.1f} s{rate}."


def _problems(result: _Result, connection: Connection) -> list[str]:
    summary = result.summary
    problems = []
    by_cause: dict[str, list[str]] = {}
    for failure in summary.failures:
        by_cause.setdefault(_cause(failure.error, connection), []).append(failure.victim.pod.key)
    for cause, keys in by_cause.items():
        named = ", ".join(keys[:_MOST_NAMED]) + (", …" if len(keys) > _MOST_NAMED else "")
        problems.append(f"{counted(len(keys))} not deleted ({named}): {cause}")
    for node, error in summary.unknown_nodes.items():
        problems.append(f"node {node} could not be looked for, its pods stay: {_cause(error, connection)}")
    if changed := summary.outcomes[Outcome.CHANGED]:
        problems.append(f"{counted(changed)} changed meanwhile and not deleted: sweep again")
    if result.is_interrupted:
        problems.append(f"interrupted: {counted(summary.left)} left; started again, it goes on")
    return problems


def _cause(error: PodlifeError, connection: Connection) -> str:
    return str(explained(error, connection) if isinstance(error, ApiError) else error)
