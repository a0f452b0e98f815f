"""Ends what is left of a streamed command when its caller leaves.

CRI has no call for it: a command outlives its streams. containerd's own API says which processes of a container are
commands, the kernel when each started and what belongs to it. A command belongs to the session that began last before
it; where that is ambiguous nothing is killed. With daemons other than containerd nothing happens.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from podlife.kubelet.runtime import ContainerRuntimeError

from .client import CriClient

log = logging.getLogger(__name__)

_SECONDS = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted after the name of the program.
_STAT_SESSION, _STAT_BEGAN = 3, 19


@dataclass(frozen=True, eq=False)
class ExecProcess:
    """A streamed command of a container, from before it was asked for."""

    container_id: str
    began_ticks: int


class ExecProcesses:
    def __init__(self, client: CriClient) -> None:
        self._client = client
        self._open: set[ExecProcess] = set()

    @contextmanager
    def begun(self, container_id: str) -> Iterator[ExecProcess]:
        session = ExecProcess(container_id, int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS))
        self._open.add(session)
        try:
            yield session
        finally:
            self._open.discard(session)

    async def end_leftovers(self, session: ExecProcess) -> None:
        """Kill what runs of a command whose end was not told. Never raises: nobody could do anything about it."""
        try:
            async with asyncio.timeout(_SECONDS):
                processes = await self._client.processes(session.container_id)
        except (ContainerRuntimeError, TimeoutError) as error:
            log.debug("what is left of a command in %s cannot be ended: %s", session.container_id, error)
            return
        ours = [pid for pid, is_command in processes if is_command and self._owner(pid, session) is session]
        if ours:
            leader = min(ours, key=lambda pid: _stat(pid, _STAT_BEGAN) or 0)
            for pid, _ in processes:
                _kill_in_session(pid, leader)

    def _owner(self, pid: int, session: ExecProcess) -> ExecProcess | None:
        began = _stat(pid, _STAT_BEGAN)
        if began is None:
            return None
        before = [
            each
            for each in self._open
            if each.container_id == session.container_id and each.began_ticks <= began
        ]
        return max(before, key=lambda each: each.began_ticks, default=None)


def _kill_in_session(pid: int, leader: int) -> None:
    """runc makes every command the leader of a session; what it starts stays in it."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Asked once the process is held: a number that was given to another one meanwhile is not in the session.
        if _stat(pid, _STAT_SESSION) == leader:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(handle)


def _stat(pid: int, field: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[field])
