"""Requests to a container's supervisor over its control socket; exec and attach sessions.

For exec, the kubelet creates pipes or a terminal and passes the other ends to the supervisor, which forks the command.
The supervisor kills the command when the connection closes, so a command never outlives its caller or the kubelet.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import socket
import struct
import termios
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from podlife.kubelet.runtime import ContainerConfig, ContainerRuntimeError, ExecError, RuntimeUnavailableError

_MESSAGE_BYTES = 64 * 1024
_CONNECT_SECONDS = 10.0


class SupervisorConnection:
    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def send(self, request: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        socket.send_fds(self._link, [msgspec.json.encode(request)], fds)

    async def receive(self) -> dict[str, Any] | None:
        """The next response; None if the supervisor has exited."""
        try:
            data = await asyncio.get_running_loop().sock_recv(self._link, _MESSAGE_BYTES)
        except ConnectionError:
            return None
        return msgspec.json.decode(data, type=dict[str, Any]) if data else None

    async def receive_fds(self) -> tuple[dict[str, Any] | None, list[int]]:
        """As `receive`, with the file descriptors that are attached, which belong to the caller."""
        await _ready(asyncio.get_running_loop().add_reader, self._link.fileno())
        try:
            data, fds, _, _ = socket.recv_fds(self._link, _MESSAGE_BYTES, 1)
        except ConnectionError:
            return None, []
        for fd in fds:
            os.set_inheritable(fd, False)
        return (msgspec.json.decode(data, type=dict[str, Any]) if data else None), fds


async def _ready(register: Callable[[int, Callable[[], None]], Any], fd: int) -> None:
    """Wait until the descriptor can be read or written: `register` is the loop's `add_reader` or `add_writer`."""
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    register(fd, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(fd)
        loop.remove_writer(fd)


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[SupervisorConnection]:
    """Connect to a supervisor. Raises OSError if it is not listening."""
    # Connect through a directory descriptor: the path may exceed the length limit of socket addresses.
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with link:
        link.setblocking(False)
        at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            link.connect(f"/proc/self/fd/{at}/control")
        finally:
            os.close(at)
        yield SupervisorConnection(link)


class _Reader(asyncio.StreamReaderProtocol):
    """Treats EIO as end of file: the kernel reports it when the other side of a terminal is closed."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None)


class _Pipe:
    """Standard input as a pipe."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.close()

    def close(self) -> None:
        if not self._writer.is_closing():
            self._writer.transport.abort()


class _Terminal:
    """Standard input as a terminal.

    Not an asyncio transport: to detect a hang-up, uvloop reads from the descriptor it writes to, and would consume the
    command's output.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = asyncio.Lock()

    async def write(self, data: bytes) -> None:
        async with self._turn:
            while data:
                try:
                    data = data[os.write(self._fd, data) :]
                except BlockingIOError:
                    await _ready(asyncio.get_running_loop().add_writer, self._fd)

    async def end(self) -> None:
        await self.write(b"\x04")

    def close(self) -> None:
        os.close(self._fd)


class ProcessExec:
    """A running command. Created by `executing`."""

    def __init__(self, connection: SupervisorConnection) -> None:
        self.stdout = asyncio.StreamReader()
        self.stderr = asyncio.StreamReader()
        self._connection = connection
        self._terminal: int | None = None
        self._stdin: _Pipe | _Terminal | None = None
        self._exit_code: int | None = None
        self._outputs: list[asyncio.BaseTransport] = []

    async def write_stdin(self, data: bytes) -> None:
        # Writing fails if the command has closed its input, which is not an error.
        with suppress(OSError):
            if self._stdin is not None:
                await self._stdin.write(data)

    async def close_stdin(self) -> None:
        with suppress(OSError):
            if self._stdin is not None:
                await self._stdin.end()

    def resize(self, *, columns: int, rows: int) -> None:
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        if self._exit_code is None:
            reply = await self._connection.receive()
            if reply is None:
                raise RuntimeUnavailableError("the container ended while a command ran in it")
            self._exit_code = int(reply["exit_code"])
        return self._exit_code

    # The command's ends of its streams. Each descriptor gets an owner before the next one is opened, because opening
    # may fail.

    async def open_pipes(self, theirs: ExitStack, *, stdin: bool) -> tuple[int, ...]:
        if stdin:
            their_in, our_in = os.pipe2(os.O_CLOEXEC)
            theirs.callback(os.close, their_in)
            await self._write_to_pipe(our_in)
        else:
            their_in = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
            theirs.callback(os.close, their_in)
        return their_in, *await self.open_outputs(theirs)

    async def open_outputs(self, theirs: ExitStack) -> tuple[int, ...]:
        fds: list[int] = []
        for reader in (self.stdout, self.stderr):
            our_end, their_end = os.pipe2(os.O_CLOEXEC)
            theirs.callback(os.close, their_end)
            await self._read_from(our_end, reader)
            fds.append(their_end)
        return tuple(fds)

    async def open_terminal(self, theirs: ExitStack, *, stdin: bool) -> tuple[int, ...]:
        self._terminal, terminal = pty.openpty()
        theirs.callback(os.close, terminal)
        await self._read_from(self._terminal, self.stdout)
        self.stderr.feed_eof()
        if stdin:
            self._stdin = _Terminal(os.dup(self._terminal))
        return terminal, terminal, terminal

    async def _read_from(self, fd: int, reader: asyncio.StreamReader) -> None:
        """Take ownership of the descriptor: it is closed with the session, even if a later step fails."""
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: _Reader(reader), os.fdopen(fd, "rb", buffering=0)
        )
        self._outputs.append(transport)

    async def _write_to_pipe(self, stdin: int) -> None:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(stdin, "wb", buffering=0)
        )
        self._stdin = _Pipe(asyncio.StreamWriter(transport, protocol, None, loop))

    def close(self) -> None:
        if self._stdin is not None:
            self._stdin.close()
        self._stdin = None
        for transport in self._outputs:
            transport.close()


@asynccontextmanager
async def executing(
    folder: Path, command: Sequence[str], *, stdin: bool, tty: bool
) -> AsyncIterator[ProcessExec]:
    """Start the command. Raises `ExecError` if that fails."""
    cannot_run = f"cannot run {command[0]!r} in the container"
    async with AsyncExitStack() as ours:
        try:
            connection = await ours.enter_async_context(connected(folder))
        except (FileNotFoundError, ConnectionError):
            raise ExecError("the container does not run") from None
        except OSError as failure:
            raise ExecError(f"{cannot_run}: {failure.strerror}") from None
        session = ProcessExec(connection)
        ours.callback(session.close)
        try:
            with ExitStack() as theirs:
                opened = session.open_terminal if tty else session.open_pipes
                fds = await opened(theirs, stdin=stdin)
                connection.send({"verb": "exec", "argv": list(command), "tty": tty}, fds)
        except OSError as failure:
            raise ExecError(f"{cannot_run}: {failure.strerror}") from None
        reply = await connection.receive()
        if reply is None:
            raise ExecError("the container ended before the command began")
        if "error" in reply:
            raise ExecError(f"{cannot_run}: {reply['error']}")
        yield session


class ProcessAttach(ProcessExec):
    """An attached session. Its end is that of the container's streams."""

    is_once = False

    async def attach(self, *, stdin: bool, tty: bool) -> None:
        """Raises `ExecError` if the container has ended."""
        with ExitStack() as theirs:
            fds = await self.open_outputs(theirs)
            self._connection.send({"verb": "attach", "stdin": stdin}, fds)
        reply, passed = await self._connection.receive_fds()
        for fd in passed:
            os.set_blocking(fd, False)
            self._stdin = _Terminal(fd)
            self._terminal = fd if tty else None
        if reply is None or "error" in reply:
            raise ExecError("the container has ended")

    async def close_stdin(self) -> None:
        """The input stays open for other sessions, unless it is meant for one."""
        if self.is_once and self._terminal is None and self._stdin is not None:
            self._stdin.close()
            self._stdin = None
            with suppress(OSError):
                self._connection.send({"verb": "close_stdin"})

    async def wait(self) -> int:
        if (reply := await self._connection.receive()) is not None and "error" in reply:
            raise ExecError(str(reply["error"]))
        return 0


@asynccontextmanager
async def attaching(folder: Path, config: ContainerConfig, *, stdin: bool) -> AsyncIterator[ProcessAttach]:
    """Raises `ExecError` if the container does not run."""
    async with AsyncExitStack() as ours:
        try:
            connection = await ours.enter_async_context(connected(folder))
        except OSError:
            raise ExecError("the container does not run") from None
        session = ProcessAttach(connection)
        ours.callback(session.close)
        await session.attach(stdin=stdin, tty=config.tty)
        session.is_once = config.stdin_once
        try:
            yield session
        finally:
            await session.close_stdin()


class HostConnection:
    """A connection to a port of the node, which is that of its pods."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def write_eof(self) -> None:
        self._writer.write_eof()


@asynccontextmanager
async def connected_to_port(port: int) -> AsyncIterator[HostConnection]:
    """Raises `ContainerRuntimeError` if nothing listens on the port."""
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection("localhost", port)
    except (OSError, TimeoutError):
        raise ContainerRuntimeError(f"dial tcp localhost:{port}: connect: connection refused") from None
    try:
        yield HostConnection(reader, writer)
    finally:
        writer.transport.abort()
