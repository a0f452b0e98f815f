"""Line framing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.client import BadAnswerError
from podlife.client.watch import LineSplitter


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_come_out_as_they_went_in_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    splitter = LineSplitter()
    seen: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += splitter.feed(stream[start:end])
    assert seen == lines
    assert splitter.rest() == b""


def test_what_was_begun_and_not_ended_is_the_rest() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a":1}\n\n \r\n{"b"') == [b'{"a":1}']
    assert splitter.feed(b":") == []
    assert splitter.rest() == b'{"b":'


def test_a_line_past_the_bound_is_refused_even_if_it_never_ends() -> None:
    splitter = LineSplitter(most_bytes=10)
    splitter.feed(b"12345678")
    with pytest.raises(BadAnswerError, match="longer than 10 bytes"):
        splitter.feed(b"901")


def test_a_huge_line_in_small_pieces_takes_linear_time() -> None:
    splitter = LineSplitter()
    began = time.process_time()
    for _ in range(16 * 1024):
        splitter.feed(b"x" * 1024)
    (line,) = splitter.feed(b"\n")
    assert len(line) == 16 * 1024 * 1024
    # In quadratic time this moves 128 GiB: minutes.
    assert time.process_time() - began < 20
