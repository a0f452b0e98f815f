"""How far a sweep is: a bar with rate and time left on a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from podlife.podgc.sweep import Progress

__all__ = ["shown_progress"]


@contextmanager
def shown_progress() -> Iterator[Callable[[Progress], None]]:
    """What to call with every progress, for as long as the block lasts."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.console import Console

    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}"),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    started = perf_counter()
    with bar:
        task = bar.add_task("Looking", total=None, rate="")

        def show(progress: Progress) -> None:
            waits = progress.waiting_seconds > 0
            bar.update(
                task,
                description=f"Quarantine ends in {progress.waiting_seconds:.0f} s" if waits else "Deleting",
                total=progress.total,
                completed=progress.done,
                rate=f"{progress.done / max(perf_counter() - started, 0.001):.0f}/s",
            )

        yield show
