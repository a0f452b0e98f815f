"""A command in a container: pipes or a terminal made here, their other ends given to the supervisor, which forks.

When the connection to the supervisor closes, what runs of the command is killed; so nothing is left of a command
whose caller, or whose agent, has gone.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

from podlife.kubelet.runtime import ExecError, RuntimeUnavailableError

from .orders import Connection, connected

__all__ = ["ProcessExec", "executing"]


class _Reader(asyncio.StreamReaderProtocol):
    """Ends its reader quietly also where the other side of a terminal is gone, which the kernel calls an error."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None)


class ProcessExec:
    """A command on its way. Made by `executing`."""

    def __init__(self, connection: Connection, terminal: int | None) -> None:
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()
        self._connection = connection
        self._terminal = terminal
        self._stdin: asyncio.StreamWriter | None = None
        self._exit_code: int | None = None
        self._transports: list[asyncio.BaseTransport] = []

    async def write_stdin(self, data: bytes) -> None:
        if self._stdin is None:
            return
        try:
            self._stdin.write(data)
            await self._stdin.drain()
        except ConnectionError:
            # The command reads no more.
            return

    async def close_stdin(self) -> None:
        if self._terminal is not None:
            await self.write_stdin(b"\x04")
        elif self._stdin is not None:
            self._stdin.close()

    def resize(self, *, columns: int, rows: int) -> None:
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        if self._exit_code is None:
            answer = await self._connection.receive()
            if answer is None:
                raise RuntimeUnavailableError("the container ended while a command ran in it")
            self._exit_code = int(answer["exit_code"])
        return self._exit_code

    async def read_from(self, fd: int, reader: asyncio.StreamReader) -> None:
        """Takes over the descriptor, as `write_to` does: it is closed with the session, whatever comes after."""
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Reader(reader), os.fdopen(fd, "rb", buffering=0)
        )
        self._transports.append(transport)

    async def write_to(self, stdin: int) -> None:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(stdin, "wb", buffering=0)
        )
        self._transports.append(transport)
        self._stdin = asyncio.StreamWriter(transport, protocol, None, loop)

    def close(self) -> None:
        for transport in self._transports:
            if not transport.is_closing():
                transport.abort() if isinstance(transport, asyncio.WriteTransport) else transport.close()


@asynccontextmanager
async def executing(
    folder: Path, command: Sequence[str], *, stdin: bool, tty: bool
) -> AsyncIterator[ProcessExec]:
    """Start the command; raises `ExecError` where it cannot be."""
    async with AsyncExitStack() as ours:
        try:
            connection = await ours.enter_async_context(connected(folder))
        except (FileNotFoundError, ConnectionError):
            raise ExecError("the container does not run") from None
        except OSError as failure:
            raise ExecError(_why_not(command, failure)) from None
        try:
            with ExitStack() as theirs:
                session = await (_with_terminal if tty else _with_pipes)(
                    connection, ours, theirs, command, stdin
                )
        except OSError as failure:
            raise ExecError(_why_not(command, failure)) from None
        await _until_started(connection, command)
        yield session


def _why_not(command: Sequence[str], failure: OSError) -> str:
    return f"cannot run {command[0]!r} in the container: {failure.strerror}"


async def _until_started(connection: Connection, command: Sequence[str]) -> None:
    answer = await connection.receive()
    if answer is None:
        raise ExecError("the container ended before the command began")
    if "error" in answer:
        raise ExecError(f"cannot run {command[0]!r} in the container: {answer['error']}")


# Each descriptor is somebody's to close before the next one is asked for: there may be none left.


async def _with_pipes(
    connection: Connection, ours: AsyncExitStack, theirs: ExitStack, command: Sequence[str], stdin: bool
) -> ProcessExec:
    session = ProcessExec(connection, None)
    ours.callback(session.close)
    if stdin:
        their_in, our_in = os.pipe2(os.O_CLOEXEC)
        theirs.callback(os.close, their_in)
        await session.write_to(our_in)
    else:
        their_in = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        theirs.callback(os.close, their_in)
    given = [their_in]
    for reader in (session.stdout, session.stderr):
        our_end, their_end = os.pipe2(os.O_CLOEXEC)
        theirs.callback(os.close, their_end)
        await session.read_from(our_end, reader)
        given.append(their_end)
    connection.send({"verb": "exec", "argv": list(command), "tty": False}, tuple(given))
    return session


async def _with_terminal(
    connection: Connection, ours: AsyncExitStack, theirs: ExitStack, command: Sequence[str], stdin: bool
) -> ProcessExec:
    our_side, terminal = pty.openpty()
    theirs.callback(os.close, terminal)
    session = ProcessExec(connection, our_side)
    ours.callback(session.close)
    await session.read_from(our_side, session.stdout)
    session.stderr.feed_eof()
    if stdin:
        await session.write_to(os.dup(our_side))
    connection.send({"verb": "exec", "argv": list(command), "tty": True}, (terminal, terminal, terminal))
    return session
