"""Commands whose caller, or whose leftovers, take their time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from podlife.kubelet.server.request import HttpError
from podlife.kubelet.server.streaming.remote_command import (
    ERROR,
    STDIN,
    STDOUT,
    ExecOptions,
    RemoteCommand,
    StreamMessage,
    exec_options,
)
from podlife.testing import virtual_time
from podlife.wire import Query

BOTH = ExecOptions(("x",), stdin=True, stdout=True, stderr=True)


class Session:
    """A command that ends when it is told to; its output ends by itself."""

    def __init__(self) -> None:
        self.stdout, self.stderr = asyncio.StreamReader(), asyncio.StreamReader()
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.stdin = b""
        self.is_left = False

    async def write_stdin(self, data: bytes) -> None:
        self.stdin += data

    async def close_stdin(self) -> None:
        self.stdin += b"<end>"

    def resize(self, *, columns: int, rows: int) -> None:
        pass

    async def wait(self) -> int:
        return await self.exited

    def end(self, code: int = 0, *, closes: bool = True) -> None:
        self.exited.set_result(code)
        if closes:
            self.stdout.feed_eof()
            self.stderr.feed_eof()

    @asynccontextmanager
    async def exec(
        self, container_id: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> AsyncIterator[Session]:
        try:
            yield self
        finally:
            self.is_left = True


class Caller:
    """Reads a piece in so many seconds. Without more to say it listens."""

    def __init__(self, *said: StreamMessage | None, seconds: float = 0.0) -> None:
        self.said = list(said)
        self.seconds = seconds
        self.heard: dict[int, bytes] = {}
        self.is_gone = False

    async def receive(self) -> StreamMessage | None:
        if not self.said:
            await asyncio.Event().wait()
        return self.said.pop(0)

    async def send(self, stream: int, data: bytes) -> None:
        if self.is_gone:
            raise ConnectionResetError
        await asyncio.sleep(self.seconds)
        self.heard[stream] = self.heard.get(stream, b"") + data

    @property
    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.heard[ERROR]))


async def run(session: Session, caller: Caller, options: ExecOptions = BOTH) -> None:
    runtime: Any = session
    opened = partial(runtime.exec, "c", options.command, stdin=options.stdin, tty=options.tty)
    command = RemoteCommand(opened, options, "error executing command in container")
    await command.run(caller, idle_seconds=100)
    assert session.is_left


@virtual_time
async def test_everything_arrives_however_slowly_its_caller_reads() -> None:
    session, caller = Session(), Caller(seconds=20)
    session.stdout.feed_data(bytes(300_000))
    session.end()
    await run(session, caller)
    assert len(caller.heard[STDOUT]) == 300_000
    assert caller.status["status"] == "Success"


@virtual_time
async def test_what_a_command_left_running_is_not_waited_for() -> None:
    session, caller = Session(), Caller()
    session.stdout.feed_data(b"all there is")
    session.end(3, closes=False)
    await run(session, caller)
    assert caller.heard[STDOUT] == b"all there is"
    assert caller.status["reason"] == "NonZeroExitCode"
    assert asyncio.get_running_loop().time() < 10


@virtual_time
async def test_a_command_on_which_nothing_is_said_or_heard_is_ended() -> None:
    session, caller = Session(), Caller(StreamMessage(STDIN, b"a"), StreamMessage(STDIN, None))
    await run(session, caller)
    assert session.stdin == b"a<end>"
    assert caller.status["message"] == "Internal error occurred: stream idle for 100 s"
    assert asyncio.get_running_loop().time() == pytest.approx(100, abs=1)


@virtual_time
async def test_a_caller_that_never_reads_is_given_up() -> None:
    session, caller = Session(), Caller(seconds=1_000_000)
    session.stdout.feed_data(b"x")
    with pytest.raises(ConnectionResetError):
        await run(session, caller)
    assert session.is_left
    assert asyncio.get_running_loop().time() < 200


@virtual_time
async def test_a_caller_that_has_gone_ends_its_command() -> None:
    session = Session()
    with pytest.raises(ConnectionResetError):
        await run(session, Caller(None))
    assert session.is_left


@virtual_time
async def test_a_caller_that_cannot_be_written_to_ends_its_command() -> None:
    session, caller = Session(), Caller()
    caller.is_gone = True
    session.stdout.feed_data(b"x")
    with pytest.raises(ConnectionResetError):
        await run(session, caller)
    assert session.is_left


@virtual_time
async def test_what_was_not_asked_for_is_not_sent_and_holds_nothing_up() -> None:
    session, caller = Session(), Caller(StreamMessage(STDIN, b"ignored"))
    session.stdout.feed_data(bytes(1_000_000))
    session.end()
    await run(session, caller, ExecOptions(("x",), stderr=True))
    assert set(caller.heard) == {ERROR}
    assert session.stdin == b""


def test_a_terminal_has_no_stream_of_errors() -> None:
    asked = exec_options(Query("command=a&command=b+c&input=1&output=1&error=1&tty=1"))
    assert asked == ExecOptions(("a", "b c"), stdin=True, stdout=True, stderr=False, tty=True)


@pytest.mark.parametrize("query", ["command=a", "command=a&error=1&tty=1", "output=1", "output=1&command="])
def test_options_of_a_command_that_make_no_sense(query: str) -> None:
    with pytest.raises(HttpError, match="you must specify"):
        exec_options(Query(query))
