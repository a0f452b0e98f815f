"""The streams of a SPDY connection: what was not read yet is bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from podlife.kubelet.server.streaming.remote_command import STDIN, StreamMessage
from podlife.kubelet.server.streaming.spdy import SpdyStreams
from podlife.kubelet.spdy import FrameWriter
from podlife.upgraded_connection import UpgradedConnection
from tests.unit.kubelet.test_spdy import Client


class Transport:
    """A connection that can be held."""

    is_read = True
    is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        assert self.is_read
        self.is_read = False

    def resume_reading(self) -> None:
        assert not self.is_read
        self.is_read = True


def streams_on(transport: Transport) -> tuple[UpgradedConnection, SpdyStreams]:
    request: Any = SimpleNamespace(transport=transport)
    connection = UpgradedConnection(request, ())

    async def write(_: bytes) -> None:
        return

    connection.response = SimpleNamespace(write=write)  # type: ignore[assignment] # it has all that is used
    connection.feed_data(Client().open(3, {"streamtype": "stdin"}))
    return connection, SpdyStreams(connection)


async def test_a_connection_is_not_read_while_too_much_waits() -> None:
    transport, frame = Transport(), FrameWriter()
    connection, streams = streams_on(transport)
    fed = 0
    while transport.is_read:
        connection.feed_data(frame.data(3, bytes(100_000)))
        fed += 1
        assert fed < 5
    for _ in range(fed):
        assert await streams.receive() == StreamMessage(STDIN, bytes(100_000))
    assert transport.is_read


async def test_a_caller_that_has_gone_says_what_it_said_and_then_nothing() -> None:
    connection, streams = streams_on(Transport())
    await streams.opened({STDIN})
    connection.feed_data(FrameWriter().data(3, b"last words", is_last=True))
    connection.feed_eof()
    said = [await streams.receive() for _ in range(3)]
    assert said == [StreamMessage(STDIN, b"last words"), StreamMessage(STDIN, None), None]


async def test_garbage_closes_the_connection() -> None:
    transport = Transport()
    connection, streams = streams_on(transport)
    connection.feed_data(b"\xff" * 16)
    assert await streams.receive() is None
    assert transport.is_closed
