"""Fence checks that run a user's program: one confirms by exit code, one reports whether the provider has the machine.

The program has no shell, no standard input, a timeout and bounded output. When `run_program` returns or is cancelled,
the whole process group has been killed: nothing is left that holds a file or a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from podlife.nodehealth.out_of_service.fence_checks.check import FenceAnswer, FenceResult, FenceSubject, shown

_GONE, _EXISTS = "gone", "exists"
MOST_OUTPUT = 64 * 1024
# Maximum wait for a killed process to exit.
_KILL_SECONDS = 5.0


class _Program:
    kind = "program"

    def __init__(self, argv: Sequence[str], *, seconds: float) -> None:
        self._argv = tuple(argv)
        self._seconds = seconds
        self.name = f"{self.kind} {PurePath(self._argv[0]).name}"

    def _answer(self, result: FenceResult, text: str = "") -> FenceAnswer:
        return FenceAnswer(self.name, result, text)

    async def _run(self, subject: FenceSubject, *arguments: str) -> Ended | FenceAnswer:
        """How the program ended, or the answer if it gave none."""
        if any(each.startswith("-") for each in arguments):
            # The program would take it as an option, chosen by the node.
            return self._answer(
                FenceResult.FAILED, "a value reported by the node begins with - and cannot be an argument"
            )
        try:
            ended = await run_program((*self._argv, *arguments), subject.environment, seconds=self._seconds)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            return self._answer(FenceResult.FAILED, f"cannot be run: {reason or error}")
        if ended.code is None:
            why = f", and printed more than {MOST_OUTPUT} bytes" if ended.is_full else ""
            return self._answer(FenceResult.TIMEOUT, f"it did not end within {self._seconds:g} s{why}")
        return ended


class CommandCheck(_Program):
    """Exit code 0 confirms that the machine is dead. The last four arguments are the node's name, UID, providerID and
    internal addresses (comma-separated), empty if unknown; the environment has the same values."""

    kind = "command"

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        ended = await self._run(subject, *subject.arguments)
        if isinstance(ended, FenceAnswer):
            return ended
        if ended.code == 0:
            return self._answer(FenceResult.DEAD)
        return self._answer(FenceResult.NOT_DEAD, _how(ended))


class ProviderGoneCheck(_Program):
    """The program's last argument is a providerID. It must exit with 0 and print one word: `gone` if the provider has
    no such machine, else `exists`. The exit code alone is not enough: providers' programs fail the same way for a
    missing machine and for a missing network."""

    kind = "provider-gone"

    async def ask(self, subject: FenceSubject) -> FenceAnswer:
        if not subject.provider_id:
            return self._answer(FenceResult.FAILED, "the node has no providerID")
        ended = await self._run(subject, subject.provider_id)
        if isinstance(ended, FenceAnswer):
            return ended
        if ended.code != 0:
            return self._answer(FenceResult.FAILED, _how(ended))
        match ended.out.strip().decode(errors="replace"):
            case "gone":
                return self._answer(FenceResult.DEAD)
            case "exists":
                return self._answer(FenceResult.NOT_DEAD, "the provider has the machine")
            case other:
                return self._answer(
                    FenceResult.FAILED, f"it printed {shown(other)!r}, neither {_GONE} nor {_EXISTS}"
                )


def _how(ended: Ended) -> str:
    assert ended.code is not None
    how = f"exit code {ended.code}" if ended.code >= 0 else f"ended by signal {-ended.code}"
    output = shown(ended.err) or shown(ended.out)
    return f"{how}: {output}" if output else how


@dataclass(frozen=True, slots=True)
class Ended:
    """`code` is negative for a signal, None after a timeout."""

    code: int | None
    out: bytes
    err: bytes
    # It printed more than the limit and blocks, because the rest is not read.
    is_full: bool


async def run_program(argv: Sequence[str], environment: Mapping[str, str], *, seconds: float) -> Ended:
    """Raises OSError or ValueError if the program cannot be started."""
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(contextlib.closing(_Output())) for _ in range(2))
        process = await asyncio.create_subprocess_exec(
            *argv,
            env={**os.environ, **environment},
            stdin=DEVNULL,
            # Own pipes: asyncio waits until every process that inherited its pipes has ended.
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
    # Even after success: processes it left running are in its group, whose ID is not reused while it has members.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                await process.wait()


class _Output:
    """A pipe whose write end is for the program; data is read as it arrives, up to a bound."""

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
