"""SPDY/3.1 frames: what a client of Kubernetes sends, cut anywhere, and what nobody should."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.kubelet.spdy import (
    DICTIONARY,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    SpdyError,
    StreamData,
    StreamOpened,
    StreamReset,
)


class Client:
    """Writes frames as a client does."""

    def __init__(self) -> None:
        self._pack = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream_id: int, headers: Mapping[str, str], flags: int = 0) -> bytes:
        return control(1, struct.pack(">IIH", stream_id, 0, 0) + self.packed(headers), flags)

    def packed(self, headers: Mapping[str, str]) -> bytes:
        block = struct.pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                block += struct.pack(">I", len(text)) + text.encode()
        return self._pack.compress(block) + self._pack.flush(zlib.Z_SYNC_FLUSH)


def control(kind: int, body: bytes, flags: int = 0, version: int = 3) -> bytes:
    return struct.pack(">II", 0x80000000 | version << 16 | kind, flags << 24 | len(body)) + body


def read(data: bytes, step: int = 1_000_000) -> list[Frame]:
    reader = FrameReader()
    return [frame for begin in range(0, len(data), step) for frame in reader.feed(data[begin : begin + step])]


def conversation() -> bytes:
    client, writer = Client(), FrameWriter()
    return b"".join(
        (
            client.open(1, {"streamtype": "error"}),
            client.open(3, {"streamtype": "stdin"}, flags=1),
            control(8, struct.pack(">I", 3) + client.packed({"more": "x"})),
            control(4, struct.pack(">I", 0)),
            control(9, struct.pack(">II", 3, 100)),
            writer.data(3, b"hello"),
            writer.data(3, b"", is_last=True),
            writer.ping(7),
            writer.refuse(3),
            client.open(5, {"streamtype": "stdout"}),
            writer.go_away(5),
        )
    )


def joined(frames: list[Frame]) -> list[Frame]:
    """Pieces of one stream's data as one."""
    whole: list[Frame] = []
    for frame in frames:
        last = whole[-1] if whole else None
        if (
            isinstance(frame, StreamData)
            and isinstance(last, StreamData)
            and last.stream_id == frame.stream_id
        ):
            whole[-1] = StreamData(frame.stream_id, last.data + frame.data, frame.is_last)
        else:
            whole.append(frame)
    return whole


@given(st.integers(1, 300))
def test_a_conversation_is_read_wherever_it_is_cut(step: int) -> None:
    assert joined(read(conversation(), step)) == [
        StreamOpened(1, {"streamtype": "error"}),
        StreamOpened(3, {"streamtype": "stdin"}, is_last=True),
        StreamData(3, b"hello", is_last=True),
        Ping(7),
        StreamReset(3),
        StreamOpened(5, {"streamtype": "stdout"}),
        GoAway(),
    ]


def test_the_words_known_beforehand_are_those_of_the_protocol() -> None:
    # The checksum that a zlib stream names when it was packed with them.
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


def test_a_frame_of_data_of_any_length_is_not_collected() -> None:
    reader = FrameReader()
    assert list(reader.feed(struct.pack(">II", 1, 0xFFFFFF))) == []
    assert list(reader.feed(b"x" * 1000)) == [StreamData(1, b"x" * 1000)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (control(1, b"", version=2), "version 2 of SPDY"),
        (control(1, b"x"), "too short"),
        (control(1, bytes(10)), "without a number"),
        (control(1, struct.pack(">IIH", 1, 0, 0) + b"nonsense"), "cannot be unpacked"),
        (control(5, b""), "of kind 5"),
        (struct.pack(">II", 0x80030001, 0xFFFFFF), "16777215 bytes"),
        (struct.pack(">II", 0, 5), "data of no stream"),
        (Client().open(1, {str(number): "" for number in range(101)}), "101 headers"),
        (Client().open(1, {"a": "x" * 70_000}), "too long"),
    ],
)
def test_what_is_not_of_the_protocol_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(SpdyError, match=why):
        read(data)


@given(st.binary(max_size=2000), st.integers(1, 500))
def test_garbage_is_refused_or_waited_for_and_nothing_else(garbage: bytes, step: int) -> None:
    try:
        read(garbage, step)
    except SpdyError:
        return


@given(st.data())
def test_a_conversation_with_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    said = bytearray(conversation())
    for _ in range(data.draw(st.integers(1, 5))):
        said[data.draw(st.integers(0, len(said) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(said), 13)
    except SpdyError:
        return
