"""The streams of a SPDY connection: what was not read yet is bounded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from podlife.kubelet.server.streaming import spdy as spdy_streams
from podlife.kubelet.server.streaming.remote_command import STDIN, StreamMessage
from podlife.kubelet.server.streaming.spdy import SpdyStreams
from podlife.kubelet.spdy import FrameWriter
from tests.unit.kubelet.test_spdy import Client


class Transport:
    """A connection that can be held."""

    is_read = True
    written = 0

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def get_write_buffer_size(self) -> int:
        """Nobody ever hears anything."""
        return self.written

    def pause_reading(self) -> None:
        assert self.is_read
        self.is_read = False

    def resume_reading(self) -> None:
        assert not self.is_read
        self.is_read = True


def streams_on(transport: Transport) -> SpdyStreams:
    request: Any = SimpleNamespace(transport=transport)
    streams = SpdyStreams(request, request)
    streams.feed_data(Client().open(3, {"streamtype": "stdin"}))
    return streams


async def test_a_connection_is_not_read_while_too_much_waits() -> None:
    transport, frame = Transport(), FrameWriter()
    streams = streams_on(transport)
    for _ in range(4):
        assert transport.is_read
        streams.feed_data(frame.data(3, bytes(100_000)))
        if not transport.is_read:
            break
    assert not transport.is_read
    while not transport.is_read:
        assert await streams.receive() == StreamMessage(STDIN, bytes(100_000))


async def test_empty_messages_count_too() -> None:
    transport, frame = Transport(), FrameWriter()
    streams = streams_on(transport)
    fed = 0
    while transport.is_read:
        streams.feed_data(frame.data(3, b"x"))
        fed += 1
        assert fed < 10_000


async def test_a_caller_that_has_gone_says_what_it_said_and_then_nothing() -> None:
    streams = streams_on(Transport())
    streams.feed_data(FrameWriter().data(3, b"last words", is_last=True))
    streams.feed_eof()
    said = [await streams.receive() for _ in range(3)]
    assert said == [StreamMessage(STDIN, b"last words"), StreamMessage(STDIN, None), None]


async def test_a_caller_that_asks_and_does_not_listen_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spdy_streams, "_UNREAD_REPLY_BYTES", 10_000)
    streams, pings = streams_on(Transport()), FrameWriter().ping(1) * 700
    assert [streams.feed_data(pings)[0] for _ in range(2)] == [False, True]


async def test_garbage_closes_the_connection() -> None:
    assert streams_on(Transport()).feed_data(b"\xff" * 16) == (True, b"")
