"""How far a sweep is: a bar with rate and time left on a terminal; anywhere else a line for each long wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from podlife.cli.output import counted
from podlife.podgc.summary import Progress

# Whoever reads a build log wonders no earlier why nothing happens.
_LONG_SECONDS = 5.0


@contextmanager
def shown_progress() -> Iterator[Callable[[Progress], None]]:
    """What to call with every progress, for as long as the block lasts."""
    if not sys.stderr.isatty():
        yield told_waits(lambda line: print(f"podlife: {line}", file=sys.stderr, flush=True))
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
        task = bar.add_task("Looking", total=None, count="", rate="")

        def show(progress: Progress) -> None:
            rate = f"{progress.done / max(perf_counter() - started, 0.001):.0f}/s" if progress.done else ""
            bar.update(
                task,
                description=describe(progress),
                # A bar without an end moves to and fro: something is waited for, and nothing counted yet.
                total=progress.total or None,
                completed=progress.done,
                count=f"{progress.done}/{progress.total}" if progress.total else "",
                rate=rate,
            )

        yield show


def told_waits(say: Callable[[str], None]) -> Callable[[Progress], None]:
    """Says once of each kind of wait what is waited for, if it is long."""
    told: set[bool] = set()

    def show(progress: Progress) -> None:
        is_long = progress.waiting_seconds >= _LONG_SECONDS and not progress.is_stopping
        if is_long and progress.is_minute not in told:
            told.add(progress.is_minute)
            say(describe(progress))

    return show


def describe(progress: Progress) -> str:
    """What it does at this moment, or waits for."""
    if progress.is_stopping:
        return "Stopping after the calls on the wire"
    if progress.waiting_seconds > 0:
        pods = counted(progress.waiting_pods)
        if progress.is_minute:
            return f"No more may go in a minute: {pods} wait {progress.waiting_seconds:.0f} s"
        return f"Quarantine of {pods} ends in {progress.waiting_seconds:.0f} s"
    return "Deleting"
