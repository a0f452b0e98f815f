"""`podlife down`: end a running `podlife up` from elsewhere, or silence one of its nodes.

A process is only signalled when it is the one that holds the data folder: same number, started at the same moment.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli import completions
from podlife.cli.commands.apiserver import DataOption
from podlife.cli.commands.up.app import order_nodes
from podlife.cli.options import duration_option, parse_timeout
from podlife.cli.output import counted
from podlife.errors import ConfigError, PodlifeError

if TYPE_CHECKING:
    from podlife.localcluster.state_dir import Holder, StateDir

# So long a second signal is taken for the first one, heard twice.
_APART_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    app.command()(down)


def down(
    node: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODE]...",
            help="Stop only the agents of these nodes, as if their machines were silent.",
            autocompletion=completions.nodes_of_up,
        ),
    ] = None,
    data: DataOption = None,
    now: Annotated[bool, typer.Option("--now", help="End the pods at once, without their grace.")] = False,
    timeout: Annotated[
        float, duration_option("How long to wait for its end.", "2m", parser=parse_timeout)
    ] = 120.0,
) -> None:
    """End a running `podlife up` and its pods; what it keeps stays, for the next one. With names of nodes: stop only
    their agents, whose pods run on; `podlife up NODE` starts them again."""
    if node:
        order_nodes(data, "stop", node)
        return
    from podlife.localcluster.state_dir import choose_state_dir

    _end(choose_state_dir(data), timeout, is_at_once=now)


def _end(state_dir: StateDir, seconds: float, *, is_at_once: bool) -> None:
    from podlife.cli.program import command_for
    from podlife.localcluster.state_dir import started_at

    path, holder = state_dir.path, state_dir.holder()
    if holder is None or holder.pid == 0:
        print(f"no `podlife up` runs on {path}")
        return
    if not holder.is_alive:
        _end_leftovers(state_dir, holder, seconds, is_at_once=is_at_once)
        return
    try:
        process = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        print(f"no `podlife up` runs on {path} any more")
        return
    try:
        # Checked again: from here on the PID cannot be reused.
        if started_at(holder.pid) != holder.started:
            print(f"no `podlife up` runs on {path} any more")
            return
        print(f"stopping `podlife up` on {path}, process {holder.pid}", flush=True)
        _signal(process, holder.pid)
        if is_at_once and not _has_ended(process, _APART_SECONDS):
            _signal(process, holder.pid)
        if not _has_ended(process, seconds):
            raise PodlifeError(
                f"process {holder.pid} has not ended after {seconds:.0f} s: "
                f"`{command_for(state_dir, 'down --now')}` ends its pods at once"
            )
    finally:
        os.close(process)
    print("stopped")


def _end_leftovers(state_dir: StateDir, holder: Holder, seconds: float, *, is_at_once: bool) -> None:
    from podlife.daemons import event_loop
    from podlife.localcluster.leftovers import end_leftovers

    print(f"`podlife up` on {state_dir.path} was killed: ending what it has left running", flush=True)
    ended = event_loop.run(end_leftovers(state_dir, holder, seconds, is_at_once=is_at_once))
    print(f"stopped ({counted(ended)} ended)")


def _signal(process: int, pid: int) -> None:
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise ConfigError(f"process {pid} is another user's: only they may end it") from None


def _has_ended(process: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
