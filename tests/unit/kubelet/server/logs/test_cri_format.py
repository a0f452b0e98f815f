"""The CRI log format, cut anywhere, and what a request asks of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.kubelet.server.logs.cri_format import LogOptions, LogText, nanoseconds_of
from podlife.kubelet.server.logs.handler import log_options
from podlife.kubelet.server.request import HttpError
from podlife.wire import Query

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


NOW = datetime(2030, 1, 1, 0, 0, 10, 500_000, tzinfo=UTC)
SECOND = 1_000_000_000
AT = int(NOW.timestamp())


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", LogOptions()),
        ("follow=true&previous=1&timestamps=", LogOptions(follow=True, previous=True, timestamps=True)),
        ("follow=false&previous=0", LogOptions()),
        ("tailLines=0&limitBytes=1", LogOptions(tail_lines=0, limit_bytes=1)),
        ("tailLines=5&tail=7", LogOptions(tail_lines=7)),
        ("tailLines=5&tail=all", LogOptions()),
        ("stream=Stderr", LogOptions(stream="Stderr")),
        ("sinceSeconds=10", LogOptions(since_nanoseconds=(AT - 10) * SECOND + SECOND // 2)),
        ("sinceTime=2030-01-01T00:00:10Z", LogOptions(since_nanoseconds=AT * SECOND)),
    ],
)
def test_options_of_a_log(query: str, options: LogOptions) -> None:
    assert log_options(Query(query), NOW) == options


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("tailLines=x", 400),
        ("tailLines=1_0", 400),
        ("tailLines=-%2B5", 400),
        ("limitBytes=%201", 400),
        ("sinceSeconds=%D9%A3", 400),
        ("tailLines=" + "9" * 5000, 400),
        ("limitBytes=²", 400),
        ("sinceTime=yesterday", 400),
        ("tailLines=-1", 422),
        ("limitBytes=0", 422),
        ("sinceSeconds=0", 422),
        ("sinceSeconds=1&sinceTime=2030-01-01T00:00:00Z", 422),
        ("stream=Stdin", 422),
    ],
)
def test_options_of_a_log_that_make_no_sense(query: str, code: int) -> None:
    with pytest.raises(HttpError) as refused:
        log_options(Query(query), NOW)
    assert refused.value.code == code
