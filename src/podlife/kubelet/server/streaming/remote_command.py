"""Runs a command in a container, or attaches to its main process, relays its streams, and reports how it ended.

A command is killed when its caller disconnects or is idle for too long. The caller receives all output, however slowly
it reads; background processes that keep the output open do not keep the connection once they are silent.

The caller sends `StreamMessage`s, and None when it has disconnected; the command's side writes to `STDOUT`, `STDERR`
and, once and last, `ERROR`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from podlife.api.codec import Object, decode_object, encode
from podlife.kubelet.runtime import ContainerRuntimeError, ExecSession
from podlife.kubelet.server.request import HttpError
from podlife.wire import Query

# WebSocket channel numbers.
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_PIECE_BYTES = 32 * 1024
_SIZE_BYTES = 4096
_DRAIN_SECONDS = 2.0
_STATUS_SECONDS = 30.0
_MAX_CELLS = 0xFFFF


@dataclass(frozen=True, slots=True)
class ExecOptions:
    command: tuple[str, ...]
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


def exec_options(query: Query) -> ExecOptions:
    """Rejects invalid options with upstream's messages."""
    options = stream_options(query)
    command = tuple(query.all("command"))
    if not command or not command[0]:
        raise HttpError(400, "you must specify at least one command for the container")
    return replace(options, command=command)


def stream_options(query: Query) -> ExecOptions:
    flags = {name: query.get(name) == "1" for name in ("input", "output", "error", "tty")}
    # A terminal has a single output.
    stderr = flags["error"] and not flags["tty"]
    if not (flags["input"] or flags["output"] or stderr):
        raise HttpError(400, "you must specify at least 1 of stdin, stdout, stderr")
    return ExecOptions((), flags["input"], flags["output"], stderr, flags["tty"])


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """Bytes on one of the caller's streams; None closes the stream."""

    stream: int
    data: bytes | None


class CommandStreams(Protocol):
    async def receive(self) -> StreamMessage | None: ...

    async def send(self, stream: int, data: bytes) -> None:
        """Waits while the caller does not read. Raises ConnectionError if it has disconnected."""


class _CallerGoneError(Exception):
    """The caller has disconnected. Not an OSError, which a runtime would take for its own failure."""


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """What `open_session` starts or attaches to; `failure` is what a failure to do so is called."""

    open_session: Callable[[], AbstractAsyncContextManager[ExecSession]]
    options: ExecOptions
    failure: str

    async def run(self, streams: CommandStreams, *, idle_seconds: float) -> None:
        """Run the command and send a Status last. Raises ConnectionError if the caller disconnects."""
        try:
            async with asyncio.timeout(idle_seconds) as limit:
                loop = asyncio.get_running_loop()

                def on_activity() -> None:
                    limit.reschedule(loop.time() + idle_seconds)

                status = await self._status(_ActivityStreams(streams, on_activity))
        except TimeoutError:
            status = _internal(f"stream idle for {idle_seconds:g} s")
        except _CallerGoneError:
            raise ConnectionResetError("the caller has gone") from None
        try:
            async with asyncio.timeout(_STATUS_SECONDS):
                await streams.send(ERROR, encode(status))
        except TimeoutError:
            raise ConnectionResetError("the caller does not listen") from None

    async def _status(self, streams: _ActivityStreams) -> Object:
        try:
            async with self.open_session() as session:
                code = await _relay(session, self.options, streams)
        except ContainerRuntimeError as failure:
            return _internal(f"{self.failure}: {failure}")
        return _exited(code)


class _ActivityStreams:
    """Streams that call `on_activity` on every use."""

    def __init__(self, streams: CommandStreams, on_activity: Callable[[], None]) -> None:
        self._streams = streams
        self._on_activity = on_activity

    async def receive(self) -> tuple[int, bytes | None]:
        message = await self._streams.receive()
        if message is None:
            raise _CallerGoneError
        self._on_activity()
        return message.stream, message.data

    async def send(self, stream: int, data: bytes) -> None:
        self._on_activity()
        try:
            await self._streams.send(stream, data)
        except ConnectionError:
            raise _CallerGoneError from None


async def _relay(session: ExecSession, options: ExecOptions, streams: _ActivityStreams) -> int:
    """Relay all streams until the command has exited; returns its exit code."""
    stdout = _Pump(session.stdout, STDOUT if options.stdout else None, streams)
    stderr = _Pump(session.stderr, STDERR if options.stderr else None, streams)
    try:
        async with asyncio.TaskGroup() as group:
            to_command = group.create_task(
                _to_command(session, options, streams), name="exec: to the command"
            )
            pumping = {
                group.create_task(stdout.run(), name="exec: stdout"),
                group.create_task(stderr.run(), name="exec: stderr"),
            }
            code = await session.wait()
            while pumping:
                before = stdout.pieces + stderr.pieces
                _, pumping = await asyncio.wait(pumping, timeout=_DRAIN_SECONDS)
                is_stuck = not (stdout.is_sending or stderr.is_sending)
                if is_stuck and before == stdout.pieces + stderr.pieces:
                    break
            for task in (to_command, *pumping):
                task.cancel()
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return code


class _Pump:
    """Copies one output of the command to the caller, or discards it."""

    def __init__(self, output: asyncio.StreamReader, stream: int | None, streams: _ActivityStreams) -> None:
        self._output = output
        self._stream = stream
        self._streams = streams
        self.pieces = 0
        self.is_sending = False

    async def run(self) -> None:
        while data := await self._output.read(_PIECE_BYTES):
            if self._stream is not None:
                self.is_sending = True
                await self._streams.send(self._stream, data)
                self.is_sending = False
            self.pieces += 1


async def _to_command(session: ExecSession, options: ExecOptions, streams: _ActivityStreams) -> None:
    sizes = b""
    while True:
        stream, data = await streams.receive()
        if stream == STDIN and options.stdin:
            if data is None:
                await session.close_stdin()
            else:
                await session.write_stdin(data)
        elif stream == RESIZE and options.tty and data:
            sizes = _resize(session, sizes + data)


def _resize(session: ExecSession, data: bytes) -> bytes:
    """Sizes arrive as concatenated JSON objects; returns the incomplete rest."""
    *complete, rest = data.replace(b"}", b"}\0").split(b"\0")
    for text in complete:
        try:
            size = decode_object(text)
            columns, rows = int(size["Width"]), int(size["Height"])
        except (ValueError, KeyError, TypeError):
            continue
        if 0 < columns <= _MAX_CELLS and 0 < rows <= _MAX_CELLS:
            session.resize(columns=columns, rows=rows)
    return rest[:_SIZE_BYTES]


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to raise in place of the group; the caller's disconnect explains all others."""
    found: BaseException = errors.subgroup(_CallerGoneError) or errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _exited(code: int) -> Object:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def _internal(why: str) -> Object:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }
