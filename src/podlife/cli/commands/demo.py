"""`podlife demo`: how pods end, explained step by step, on a temporary cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from podlife.cli.options import GoCommand, command_group, with_groups

app = command_group(
    "Watch how pods end: a cluster of its own, real processes, shortened times, every step explained and checked."
)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    pause: Annotated[
        bool,
        typer.Option("--pause", help="Go on with Enter after every step: time for commands of your own."),
    ] = False
    ui: Annotated[bool, typer.Option("--ui", help="Serve the page of `podlife ui` meanwhile.")] = False
    keep: Annotated[bool, typer.Option("--keep", help="Leave the cluster running at the end.")] = False


def _play(name: str, options: DemoOptions) -> None:
    from podlife.daemons import event_loop
    from podlife.demo import runner

    settings = runner.DemoSettings(name, is_paused=options.pause, is_kept=options.keep, has_page=options.ui)
    if not event_loop.run(runner.run(settings, shutdown=event_loop.stopped_by_signals)):
        raise KeyboardInterrupt


@app.command(name="node-failure", cls=GoCommand, short_help="A node falls silent, and comes back.")
@with_groups
def node_failure(*, options: DemoOptions) -> None:
    """A node falls silent: not ready, evicted, Terminating for ever, a StatefulSet that is stuck, the way out, the
    return. About a minute."""
    _play("node-failure", options)


@app.command(name="graceful-delete", cls=GoCommand, short_help="A deletion, step by step.")
@with_groups
def graceful_delete(*, options: DemoOptions) -> None:
    """A deletion in ten steps: hooks, TERM, a grace overrun, KILL, and who removes the record. About a minute."""
    _play("graceful-delete", options)


@app.command(name="orphans", cls=GoCommand, short_help="A node is deleted under its pods.")
@with_groups
def orphans(*, options: DemoOptions) -> None:
    """A node is deleted under its pods: quarantine, a node that returns in time, one that does not. About a minute."""
    _play("orphans", options)
