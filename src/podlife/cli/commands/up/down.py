"""`podlife down`: end a running `podlife up` from elsewhere.

A process is only signalled when it is the one that holds the data folder: same number, started at the same moment.
"""

from __future__ import annotations

import os
import select
import signal

from podlife.cli.commands.up.lines import command_for
from podlife.cli.output import counted
from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.state_dir import Holder, StateDir, started_at

# So long a second signal is taken for the first one, heard twice.
_APART_SECONDS = 0.5


def end_cluster(state_dir: StateDir, seconds: float, *, is_at_once: bool) -> None:
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
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
