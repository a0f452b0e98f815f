"""Runs a program with limits: no shell, no standard input, a timeout, bounded output.

When `run_program` returns or is cancelled, the whole process group has been killed: nothing is left that holds a file
or a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_OUTPUT = 64 * 1024
# How long a killed process may take to be gone.
_KILL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """`code` is negative for a signal, None for one that did not end in time."""

    code: int | None
    out: bytes
    err: bytes
    # It printed more than the limit and blocks because the rest is not read.
    is_full: bool


async def run_program(argv: Sequence[str], environment: Mapping[str, str], *, seconds: float) -> Ended:
    """Raises OSError and ValueError when it cannot be started."""
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(contextlib.closing(_Output())) for _ in range(2))
        process = await asyncio.create_subprocess_exec(
            *argv,
            env={**os.environ, **environment},
            stdin=DEVNULL,
            # Own pipes: asyncio's are waited for until every process that inherited them has ended.
            stdout=out.writing,
            stderr=err.writing,
            start_new_session=True,
        )
        code = None
        try:
            out.begin()
            err.begin()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    code = await process.wait()
        finally:
            await _kill_group(process)
        return Ended(code, out.taken(), err.taken(), out.is_full or err.is_full)


async def _kill_group(process: Process) -> None:
    # Also after a good end: what it has left running is in its group, whose number is nobody else's as long as it has
    # members.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                await process.wait()


class _Output:
    """One end for the program, the other read as it comes, up to a bound."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._loop = asyncio.get_running_loop()
        self._text = b""
        self.is_full = False

    def begin(self) -> None:
        os.close(self.writing)
        self.writing = -1
        self._loop.add_reader(self._reading, self._take)

    def taken(self) -> bytes:
        """Including data that had arrived and was not read yet."""
        self._take()
        return self._text

    def _take(self) -> None:
        try:
            piece = b"" if self.is_full else os.read(self._reading, MOST_OUTPUT)
        except BlockingIOError:
            return
        self._text += piece
        self.is_full = len(self._text) >= MOST_OUTPUT
        if not piece or self.is_full:
            self._loop.remove_reader(self._reading)

    def close(self) -> None:
        self._loop.remove_reader(self._reading)
        os.close(self._reading)
        if self.writing >= 0:
            os.close(self.writing)
