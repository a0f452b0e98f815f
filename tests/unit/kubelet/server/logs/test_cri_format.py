"""The CRI log format, cut anywhere."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.kubelet.server.logs.cri_format import LogOptions, LogText, nanoseconds_of

LOG = (
    b"2030-01-01T00:00:01Z stdout F one\n"
    b"2030-01-01T00:00:02.5Z stdout P tw\n"
    b"2030-01-01T00:00:02.6+02:00 stderr F err\n"
    b"2030-01-01T00:00:03.000000007Z stdout F o\n"
    b"this is no line of a log\n"
    b"2030-01-01T00:00:04Z stdout F:x \n"
    b"2030-01-01T00:00:05Z other F gone\n"
    b"2030-01-01T00:00:06Z stdout F no end"
)


def shown(options: LogOptions, log: bytes = LOG, step: int = 1_000_000) -> bytes:
    text = LogText(options)
    return b"".join(text.feed(log[begin : begin + step]) for begin in range(0, len(log), step))


def test_lines_are_shown_without_their_headers_and_parts_are_joined() -> None:
    assert shown(LogOptions(stream="Stdout")) == b"one\ntwo\n\nno end"
    assert shown(LogOptions(stream="Stderr")) == b"err\n"


def test_timestamps_have_nine_digits_and_stand_before_new_lines_only() -> None:
    assert shown(LogOptions(timestamps=True)).splitlines() == [
        b"2030-01-01T00:00:01.000000000Z one",
        b"2030-01-01T00:00:02.500000000Z twerr",
        b"2030-01-01T00:00:03.000000007Z o",
        b"2030-01-01T00:00:04.000000000Z ",
        b"2030-01-01T00:00:06.000000000Z no end",
    ]


def test_what_is_older_than_asked_for_is_left_out_whatever_its_zone() -> None:
    since = nanoseconds_of("2030-01-01T00:00:02.55Z")
    assert shown(LogOptions(since_nanoseconds=since)) == b"o\n\nno end"


def test_no_more_bytes_than_asked_for_times_included() -> None:
    options = LogOptions(timestamps=True, limit_bytes=32)
    assert shown(options, step=7) == b"2030-01-01T00:00:01.000000000Z o"


@given(st.integers(1, 200), st.booleans(), st.sampled_from(["All", "Stdout", "Stderr"]))
def test_where_a_log_is_cut_makes_no_difference(step: int, timestamps: bool, stream: str) -> None:
    options = LogOptions(timestamps=timestamps, stream=stream)
    assert shown(options, step=step) == shown(options)


@given(st.binary(max_size=3000), st.integers(1, 700))
def test_garbage_is_passed_over_and_what_follows_is_read(garbage: bytes, step: int) -> None:
    log = garbage.replace(b"std", b"xxx") + b"\n" + LOG
    assert shown(LogOptions(), log, step) == shown(LogOptions())


def test_a_line_without_an_end_is_not_collected() -> None:
    text = LogText(LogOptions())
    text.feed(b"2030-01-01T00:00:01Z stdout F ")
    assert len(text.feed(b"x" * 100_000)) == 100_000
    garbage = LogText(LogOptions())
    assert garbage.feed(b"x" * 100_000) == b""
    assert garbage.feed(b"y" * 100_000 + b"\n" + LOG) == shown(LogOptions())


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2030-01-01T00:00:00Z", datetime(2030, 1, 1, tzinfo=UTC)),
        ("2030-01-01T02:00:00+02:00", datetime(2030, 1, 1, tzinfo=UTC)),
        ("2029-12-31T22:30:00-01:30", datetime(2030, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_its_zone(text: str, moment: datetime) -> None:
    assert nanoseconds_of(text) == int(moment.timestamp()) * 1_000_000_000


@pytest.mark.parametrize(
    "text", ["", "2030", "2030-13-01T00:00:00Z", "2030-01-01T00:00:00", "2030-01-01 00:00:00Z"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert nanoseconds_of(text) is None
