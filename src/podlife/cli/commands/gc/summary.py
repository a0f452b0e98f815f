"""The result of a sweep, as text and exit code. Pure: it prints nothing.

The exit code is 0 only if every planned pod is gone or only held by a finalizer, 1 if a pod could not be deleted, and
130 after Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from podlife.cli.commands.gc.output import Shown, below_threshold, reasons_of, where_of
from podlife.cli.output import counted
from podlife.client import Connection
from podlife.daemons.connection import explained
from podlife.errors import ApiError, PodlifeError
from podlife.podgc.plan import Victim
from podlife.podgc.removal import Outcome, Removal
from podlife.podgc.summary import Summary

INTERRUPTED = 130
_MAX_NAMED = 3


@dataclass(slots=True)
class Result:
    """Filled while the sweep runs, so that it can be reported even after an interruption."""

    summary: Summary = field(default_factory=Summary)
    deleted: list[Victim] = field(default_factory=list)
    # Pods by the finalizers that hold them: accepted deletions, and pods deleted earlier and marked Failed now.
    held: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    marked: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    # Pods kept by a pre-delete step, by reason.
    kept: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    has_begun: bool = False
    is_interrupted: bool = False
    # Interrupted twice: the outcome of requests in flight is unknown.
    is_cut: bool = False

    def record(self, victim: Victim, removal: Removal) -> None:
        if removal.outcome is Outcome.DELETED:
            self.deleted.append(victim)
        elif removal.outcome is Outcome.HELD:
            self.held.setdefault(removal.finalizers, []).append(victim.pod.key)
        elif removal.outcome is Outcome.MARKED:
            self.marked.setdefault(victim.pod.metadata.finalizers, []).append(victim.pod.key)
        elif removal.outcome is Outcome.KEPT:
            self.kept.setdefault(removal.why, []).append(victim.pod.key)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """`lines` go to standard output, `problems` to standard error."""

    lines: list[str]
    problems: list[str]
    code: int


def summarize(result: Result, connection: Connection, shown: Shown | None = None) -> SweepReport:
    if not result.has_begun:
        return SweepReport([], ["interrupted: nothing was deleted"], INTERRUPTED)
    problems = list(_problems(result, connection))
    is_done = not problems and result.summary.is_complete
    code = INTERRUPTED if result.is_interrupted else 0 if is_done else 1
    return SweepReport([_headline(result, shown or Shown()), *_besides(result)], problems, code)


def _headline(result: Result, shown: Shown) -> str:
    number = len(result.deleted)
    if not number:
        is_empty = not (
            result.is_interrupted
            or result.summary.failures
            or result.summary.left
            or result.held
            or result.kept
            or result.summary.held_back
        )
        if not is_empty or result.marked:
            return "Nothing was deleted."
        few = below_threshold(result.summary.terminated, shown.settings)
        return f"Nothing to collect {where_of(shown.namespace)}.{few}"
    # After a wait for a quarantine the rate would be meaningless.
    rate = "" if result.summary.has_waited else f", {number / max(result.seconds, 0.001):.0f} a second"
    return f"{counted(number)} deleted ({reasons_of(result.deleted)}) in {result.seconds:.1f} s{rate}."


def _besides(result: Result) -> Iterator[str]:
    for finalizers, keys in result.held.items():
        yield f"  {counted(len(keys))} held by {', '.join(finalizers)} ({_named(keys)}): gone when that is taken off"
    for finalizers, keys in result.marked.items():
        held = f"held by {', '.join(finalizers)} ({_named(keys)})"
        yield f"  {counted(len(keys))} deleted before and {held}: marked Failed"
    waiting: dict[str, list[str]] = {}
    for waits in result.summary.waiting:
        waiting.setdefault(waits.what, []).append(waits.victim.pod.key)
    for what, keys in waiting.items():
        yield f"  {counted(len(keys))} not to go before the owner has seen the end ({_named(keys)}): {what}"
    outcomes = result.summary.outcomes
    for outcome, text in (
        (Outcome.GONE, "gone already"),
        (Outcome.REPLACED, "recreated under the same name in the meantime: left alone"),
    ):
        if outcomes[outcome]:
            yield f"  {counted(outcomes[outcome])} {text}"


def _problems(result: Result, connection: Connection) -> Iterator[str]:
    summary = result.summary
    by_cause: dict[str, list[str]] = {}
    for failure in summary.failures:
        # Group equal errors, which differ only in the pod's name.
        own = f"/pods/{failure.victim.pod.metadata.name}"
        cause = _cause(failure.error, connection).replace(own, "/pods/…")
        by_cause.setdefault(cause, []).append(failure.victim.pod.key)
    for cause, keys in by_cause.items():
        yield f"{counted(len(keys))} not deleted ({_named(keys)}): {cause}"
    for why, keys in result.kept.items():
        yield f"{counted(len(keys))} not deleted ({_named(keys)}): {why}"
    for item in summary.held_back:
        keys = [pod.key for pod in item.pods]
        why = f"{item.refusal.why}; lifted by {item.refusal.remedy}"
        yield f"{counted(len(keys))} held back ({_named(keys)}): {why}"
    for node, error in summary.unknown_nodes.items():
        yield f"cannot get node {node}, keeping its pods: {_cause(error, connection)}"
    if changed := summary.outcomes[Outcome.CHANGED]:
        yield f"{counted(changed)} changed meanwhile and not deleted: sweep again"
    if result.is_cut:
        yield "interrupted twice: requests in flight were abandoned and may still take effect; sweep again"
    elif result.is_interrupted:
        left = summary.left
        yield (
            f"interrupted: {counted(left)} left; run it again to continue"
            if left
            else "interrupted after all work was done"
        )


def _named(keys: list[str]) -> str:
    return ", ".join(keys[:_MAX_NAMED]) + (", …" if len(keys) > _MAX_NAMED else "")


def _cause(error: PodlifeError, connection: Connection) -> str:
    return str(explained(error, connection) if isinstance(error, ApiError) else error)
