"""Runs commands in a container: in one CRI call, or with streams through the daemon's streaming server.

The daemon kills a command whose ExecSync call times out. A streamed command outlives its streams, and CRI has no call
to end it, so `ExecProcesses` kills it: containerd's own API lists the container's exec commands, the kernel their start
times and sessions. A command belongs to the session opened last before it started; if that is ambiguous, nothing is
killed. With other CRI daemons leftovers keep running.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from podlife.aio import cancel_and_wait, spawn
from podlife.kubelet.runtime import (
    ContainerRuntimeError,
    ContainerStatus,
    ExecError,
    ExecResult,
    ExecTimeoutError,
    NotFoundInRuntimeError,
    RuntimeUnavailableError,
)
from podlife.kubelet.runtimes.preconditions import check_exec, check_running
from podlife.kubelet.spdy import SpdyError

from .client import CriClient
from .spdy import SpdyConnection, upgraded

log = logging.getLogger(__name__)

_PROTOCOL = "v4.channel.k8s.io"
_OUTPUT_BYTES = 1024 * 1024
_STATUS_BYTES = 64 * 1024
# Limit for a command without a timeout.
_MAX_SECONDS = 24 * 3600.0
_KILL_SECONDS = 5.0
_TELL_SECONDS = 5.0
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted after the program name.
_STAT_SESSION, _STAT_STARTED = 3, 19


async def run_command(
    client: CriClient, container: ContainerStatus, command: Sequence[str], timeout_seconds: float | None
) -> ExecResult:
    """Returns the exit code and up to 1 MiB of each output stream."""
    check_exec(command, container.config.name, container.state)
    seconds = _MAX_SECONDS if timeout_seconds is None else max(timeout_seconds, 0.001)
    bound = 0 if timeout_seconds is None else math.ceil(seconds)
    try:
        async with asyncio.timeout(seconds):
            reply = await _call(client, "ExecSync", container, command, timeout=bound, seconds=seconds + 10)
    except TimeoutError:
        # The daemon kills the command when the call is cancelled.
        text = f"command {' '.join(command)!r} timed out after {seconds:g} s"
        raise ExecTimeoutError(text) from None
    return ExecResult(reply.exit_code, reply.stdout[:_OUTPUT_BYTES], reply.stderr[:_OUTPUT_BYTES])


@asynccontextmanager
async def executing(
    client: CriClient, container: ContainerStatus, command: Sequence[str], *, stdin: bool, tty: bool
) -> AsyncIterator[StreamedCommand]:
    """Start the command with streams; raises ExecError if the daemon refuses it."""
    check_exec(command, container.config.name, container.state)
    # A terminal has a single output stream.
    streams = {"tty": tty, "stdin": stdin, "stdout": True, "stderr": not tty}
    reply = await _call(client, "Exec", container, command, **streams)
    async with _streaming(reply.url, _PROTOCOL) as connection:
        session = StreamedCommand(connection, command, stdin=stdin, tty=tty)
        async with _pumping(session.pump()):
            yield session


@asynccontextmanager
async def attaching(
    client: CriClient, container: ContainerStatus, *, stdin: bool
) -> AsyncIterator[StreamedCommand]:
    check_running(container.config.name, container.state)
    tty = container.config.tty
    stdin = stdin and container.config.stdin
    streams = {"tty": tty, "stdin": stdin, "stdout": True, "stderr": not tty}
    reply = await client.call("Attach", container_id=container.id, **streams)
    async with _streaming(reply.url, _PROTOCOL) as connection:
        session = StreamedCommand(connection, ("attach",), stdin=stdin, tty=tty, ends_input=not tty)
        async with _pumping(session.pump()):
            yield session


@asynccontextmanager
async def connected_to_port(client: CriClient, sandbox_id: str, port: int) -> AsyncIterator[ForwardedPort]:
    """Raises ContainerRuntimeError if nothing listens on the port."""
    reply = await client.call("PortForward", pod_sandbox_id=sandbox_id, port=[port])
    async with _streaming(reply.url, "portforward.k8s.io") as connection:
        forwarded = ForwardedPort(connection, port)
        async with _pumping(forwarded.pump()):
            yield forwarded
            await forwarded.check()


@asynccontextmanager
async def _streaming(url: object, protocol: str) -> AsyncIterator[SpdyConnection]:
    try:
        async with upgraded(str(url), protocol) as connection:
            yield connection
    except (SpdyError, OSError) as error:
        raise ExecError(f"the streaming server of containerd cannot be used: {error}") from None


@asynccontextmanager
async def _pumping(pumping: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    pump = spawn(pumping, name="containerd stream", on_failure=lambda error: log.debug("%s", error))
    try:
        yield
    finally:
        await cancel_and_wait(pump)


async def _call(
    client: CriClient, method: str, container: ContainerStatus, command: Sequence[str], **fields: Any
) -> Any:
    try:
        return await client.call(method, container_id=container.id, cmd=list(command), **fields)
    except (RuntimeUnavailableError, NotFoundInRuntimeError):
        raise
    except ContainerRuntimeError as error:
        raise ExecError(
            f"cannot run {command[0]!r} in container {container.config.name!r}: {error}"
        ) from None


class StreamedCommand:
    """A command in a container, over one connection to the streaming server."""

    def __init__(
        self,
        connection: SpdyConnection,
        command: Sequence[str],
        *,
        stdin: bool,
        tty: bool,
        ends_input: bool = True,
    ) -> None:
        """`ends_input`: whether the end of the caller's input is that of the command's."""
        self._ends_input = ends_input
        self._connection = connection
        self._command = command
        self._gate = _Gate()
        self.stdout = self._gate.reader()
        self.stderr = self._gate.reader()
        self._status = bytearray()
        self._has_status = asyncio.Event()
        # The server waits until the client has opened all expected streams.
        connection.open_stream("error", self._take_status, self._has_status.set)
        one_way: Any = (lambda _: None, lambda: None)
        self._stdin = connection.open_stream("stdin", *one_way) if stdin else None
        connection.open_stream("stdout", self.stdout.feed_data, self.stdout.feed_eof)
        if tty:
            self.stderr.feed_eof()
        else:
            connection.open_stream("stderr", self.stderr.feed_data, self.stderr.feed_eof)
        self._resize = connection.open_stream("resize", *one_way) if tty else None

    async def pump(self) -> None:
        await self._connection.pump(self._gate.is_open)

    async def write_stdin(self, data: bytes) -> None:
        if self._stdin is not None:
            # The command may have closed its stdin.
            with suppress(ConnectionError):
                await self._connection.send(self._stdin, data)

    async def close_stdin(self) -> None:
        if self._stdin is None or not self._ends_input:
            return
        if self._resize is not None:
            await self.write_stdin(b"\x04")
            return
        stream, self._stdin = self._stdin, None
        with suppress(ConnectionError):
            await self._connection.finish(stream)

    def resize(self, *, columns: int, rows: int) -> None:
        if self._resize is not None:
            self._connection.post(
                self._resize, msgspec.json.encode({"Width": columns, "Height": rows}) + b"\n"
            )

    @property
    def has_ended(self) -> bool:
        """Whether the server reported its end; a broken connection does not count."""
        return bool(self._status)

    async def wait(self) -> int:
        await self._has_status.wait()
        return _exit_code(bytes(self._status), self._command)

    def _take_status(self, data: bytes) -> None:
        self._status += data[: max(0, _STATUS_BYTES - len(self._status))]


class ForwardedPort:
    """A connection to a port of a pod, over one connection to the streaming server."""

    def __init__(self, connection: SpdyConnection, port: int) -> None:
        self._connection = connection
        self._gate = _Gate()
        self._failure = bytearray()
        self._has_told = asyncio.Event()
        self.reader = self._gate.reader()
        of_port = {"port": str(port), "requestid": "0"}
        # The server wants to know the error stream first.
        error = connection.open_stream("error", self._take_failure, self._has_told.set, **of_port)
        self._data = connection.open_stream("data", self.reader.feed_data, self.reader.feed_eof, **of_port)
        connection.post(error, b"", is_last=True)

    async def pump(self) -> None:
        await self._connection.pump(self._gate.is_open)

    async def write(self, data: bytes) -> None:
        await self._connection.send(self._data, data)

    async def write_eof(self) -> None:
        await self._connection.finish(self._data)

    async def check(self) -> None:
        """Raises ContainerRuntimeError if the server has told a failure, which may come after the end of the data."""
        if self.reader.at_eof():
            with suppress(TimeoutError):
                async with asyncio.timeout(_TELL_SECONDS):
                    await self._has_told.wait()
        if self._failure:
            raise ContainerRuntimeError(self._failure.decode(errors="replace").strip())

    def _take_failure(self, data: bytes) -> None:
        self._failure += data[: max(0, _STATUS_BYTES - len(self._failure))]


class _Gate:
    """Backpressure: acts as the readers' transport, and pauses the connection while a stream is not read."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()

    def reader(self) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        reader.set_transport(self)  # type: ignore[arg-type]
        return reader

    def pause_reading(self) -> None:
        self.is_open.clear()

    def resume_reading(self) -> None:
        self.is_open.set()


def _exit_code(status: bytes, command: Sequence[str]) -> int:
    """Parse the final Kubernetes Status that the server sends."""
    if not status:
        raise RuntimeUnavailableError("the connection to the command ended before the command did")
    try:
        reply: dict[str, Any] = msgspec.json.decode(status, type=dict[str, Any])
        if reply.get("status") == "Success":
            return 0
        for cause in reply.get("details", {}).get("causes", []):
            if cause.get("reason") == "ExitCode":
                return int(cause["message"])
        text = str(reply.get("message"))
    except (msgspec.DecodeError, ValueError, KeyError, AttributeError) as error:
        raise ExecError(f"cannot parse the exit status of {command[0]!r}: {error}") from None
    raise ExecError(f"cannot run {command[0]!r} in the container: {text}")


@dataclass(frozen=True, eq=False)
class ExecProcess:
    """A streamed command, registered before it is started."""

    container_id: str
    opened_ticks: int


class ExecProcesses:
    def __init__(self, client: CriClient) -> None:
        self._client = client
        self._open: set[ExecProcess] = set()

    @contextmanager
    def track(self, container_id: str) -> Iterator[ExecProcess]:
        session = ExecProcess(container_id, int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS))
        self._open.add(session)
        try:
            yield session
        finally:
            self._open.discard(session)

    async def kill_leftovers(self, session: ExecProcess) -> None:
        """Kill the processes of a command whose end was not reported. Never raises: callers could not recover."""
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                processes = await self._client.processes(session.container_id)
        except (ContainerRuntimeError, TimeoutError) as error:
            log.debug("cannot kill leftovers of a command in %s: %s", session.container_id, error)
            return
        ours = [pid for pid, is_command in processes if is_command and self._owner(pid, session) is session]
        if ours:
            leader = min(ours, key=lambda pid: _stat(pid, _STAT_STARTED) or 0)
            for pid, _ in processes:
                _kill_in_session(pid, leader)

    def _owner(self, pid: int, session: ExecProcess) -> ExecProcess | None:
        started_ticks = _stat(pid, _STAT_STARTED)
        if started_ticks is None:
            return None
        candidates = [
            each
            for each in self._open
            if each.container_id == session.container_id and each.opened_ticks <= started_ticks
        ]
        return max(candidates, key=lambda each: each.opened_ticks, default=None)


def _kill_in_session(pid: int, leader: int) -> None:
    """runc makes every exec command a session leader; its children stay in the session."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Checked with the pidfd open: a process that reused the PID is not in the session.
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
