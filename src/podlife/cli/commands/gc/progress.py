"""Progress of a sweep: a bar with rate and time left on a terminal; otherwise a line for each long wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from podlife.cli.output import counted
from podlife.podgc.summary import Progress

# Shorter waits need no explanation in a build log.
_LONG_SECONDS = 5.0


@contextmanager
def shown_progress() -> Iterator[Callable[[Progress], None]]:
    """Yields the function to call with every progress."""
    if not sys.stderr.isatty():
        yield report_waits(lambda line: print(f"podlife: {line}", file=sys.stderr, flush=True))
        return
    from rich import progress as rich
    from rich.console import Console

    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[count]}"),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    started = perf_counter()
    with bar:
        task = bar.add_task("Listing", total=None, count="", rate="")

        def show(progress: Progress) -> None:
            rate = f"{progress.done / max(perf_counter() - started, 0.001):.0f}/s" if progress.done else ""
            bar.update(
                task,
                description=describe(progress),
                # Without a total the bar pulses: it waits, and has no count yet.
                total=progress.total or None,
                completed=progress.done,
                count=f"{progress.done}/{progress.total}" if progress.total else "",
                rate=rate,
            )

        yield show


def report_waits(report: Callable[[str], None]) -> Callable[[Progress], None]:
    """Reports each kind of long wait once."""
    reported: set[bool] = set()

    def show(progress: Progress) -> None:
        is_long = progress.waiting_seconds >= _LONG_SECONDS and not progress.is_stopping
        if is_long and progress.is_minute not in reported:
            reported.add(progress.is_minute)
            report(describe(progress))

    return show


def describe(progress: Progress) -> str:
    """What the sweep currently does or waits for."""
    if progress.is_stopping:
        return "Stopping after requests in flight"
    if progress.waiting_seconds > 0:
        pods = counted(progress.waiting_pods)
        if progress.is_minute:
            return f"Rate limit reached: {pods} wait {progress.waiting_seconds:.0f} s"
        return f"Quarantine of {pods} ends in {progress.waiting_seconds:.0f} s"
    return "Deleting"
