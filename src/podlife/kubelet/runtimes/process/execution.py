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

    async def read_from(self, stdout: int, stderr: int | None) -> None:
        await self._read(stdout, self.stdout)
        if stderr is None:
            self.stderr.feed_eof()
        else:
            await self._read(stderr, self.stderr)

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

    async def _read(self, fd: int, reader: asyncio.StreamReader) -> None:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Reader(reader), os.fdopen(fd, "rb", buffering=0)
        )
        self._transports.append(transport)


@asynccontextmanager
async def executing(
    folder: Path, command: Sequence[str], *, stdin: bool, tty: bool
) -> AsyncIterator[ProcessExec]:
    """Start the command; raises `ExecError` where it cannot be."""
    async with AsyncExitStack() as ours:
        try:
            connection = await ours.enter_async_context(connected(folder))
        except OSError:
            raise ExecError("the container does not run") from None
        try:
            with ExitStack() as theirs:
                session = await (_with_terminal if tty else _with_pipes)(connection, theirs, command, stdin)
        except OSError as failure:
            raise ExecError(f"cannot run {command[0]!r} in the container: {failure.strerror}") from None
        ours.callback(session.close)
        await _until_started(connection, command)
        yield session


async def _until_started(connection: Connection, command: Sequence[str]) -> None:
    answer = await connection.receive()
    if answer is None:
        raise ExecError("the container ended before the command began")
    if "error" in answer:
        raise ExecError(f"cannot run {command[0]!r} in the container: {answer['error']}")


async def _with_pipes(
    connection: Connection, theirs: ExitStack, command: Sequence[str], stdin: bool
) -> ProcessExec:
    session = ProcessExec(connection, None)
    if stdin:
        their_in, our_in = os.pipe2(os.O_CLOEXEC)
        await session.write_to(our_in)
    else:
        their_in = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    our_out, their_out = os.pipe2(os.O_CLOEXEC)
    our_error, their_error = os.pipe2(os.O_CLOEXEC)
    for fd in (their_in, their_out, their_error):
        theirs.callback(os.close, fd)
    await session.read_from(our_out, our_error)
    connection.send({"verb": "exec", "argv": list(command), "tty": False}, (their_in, their_out, their_error))
    return session


async def _with_terminal(
    connection: Connection, theirs: ExitStack, command: Sequence[str], stdin: bool
) -> ProcessExec:
    ours, terminal = pty.openpty()
    theirs.callback(os.close, terminal)
    session = ProcessExec(connection, ours)
    if stdin:
        await session.write_to(os.dup(ours))
    await session.read_from(ours, None)
    connection.send({"verb": "exec", "argv": list(command), "tty": True}, (terminal, terminal, terminal))
    return session
