"""Schedules: what is refused and why, and the start times, with daylight saving time as robfig/cron has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.cron import NEVER, load_zone, parse_schedule


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("nonsense", "expected exactly 5 fields, found 1: [nonsense]"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        (
            "a-b-c * * * *",
            'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax',
        ),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("1/-1 * * * *", "negative number (-1) not allowed: -1"),
        (
            f"{'9' * 5000} * * * *",
            f'failed to parse int from {"9" * 5000}: strconv.Atoi: parsing "{"9" * 5000}": value out of range',
        ),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("@every 3d", 'failed to parse duration @every 3d: time: unknown unit "d" in duration "3d"'),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_what_cannot_be_parsed_is_refused_in_upstreams_words(schedule: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_schedule(schedule)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("schedule", "after", "starts"),
    [
        ("*/15 * * * *", "2026-01-01T00:14:59", ["2026-01-01T00:15:00", "2026-01-01T00:30:00"]),
        ("0 9-17/4 * JAN-mar Mon", "2026-01-30T00:00:00", ["2026-02-02T09:00:00", "2026-02-02T13:00:00"]),
        # Both days restrict: either will do.
        ("0 0 13 * fri", "2026-01-01T00:00:00", ["2026-01-02T00:00:00", "2026-01-09T00:00:00"]),
        # A star restricts nothing: both must hold.
        ("0 0 13 * *", "2026-01-01T00:00:00", ["2026-01-13T00:00:00", "2026-02-13T00:00:00"]),
        # A step takes the star away.
        ("0 0 */40 * 1", "2026-01-02T00:00:00", ["2026-01-05T00:00:00"]),
        ("50/5 1,,3 * * ?", "2026-01-01T01:52:00", ["2026-01-01T01:55:00", "2026-01-01T03:50:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("@yearly", "2026-01-01T00:00:00", ["2027-01-01T00:00:00"]),
        ("@monthly", "2026-12-01T00:00:00", ["2027-01-01T00:00:00"]),
        ("@weekly", "2026-11-17T00:00:00", ["2026-11-22T00:00:00"]),
        ("@midnight", "2026-11-17T10:00:00", ["2026-11-18T00:00:00"]),
        ("@hourly", "2026-11-17T10:00:00", ["2026-11-17T11:00:00"]),
        ("@every 1h30m", "2026-11-17T10:00:10.5", ["2026-11-17T11:30:10", "2026-11-17T13:00:10"]),
        ("@every 100ms", "2026-11-17T10:00:00", ["2026-11-17T10:00:01"]),
        ("CRON_TZ=Asia/Kolkata 0 0 * * *", "2026-01-01T00:00:00", ["2026-01-01T18:30:00"]),
    ],
)
def test_start_times_follow_on_each_other(schedule: str, after: str, starts: list[str]) -> None:
    parsed, moment = parse_schedule(schedule), utc(after)
    for start in starts:
        moment = parsed.next(moment)
        assert moment == utc(start)


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "starts"),
    [
        # 02:30 does not exist on 29 March: the day is left out.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00", ["2026-03-30T00:30:00"]),
        # It exists twice on 25 October: both count.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00",
            ["2026-10-25T00:30:00", "2026-10-25T01:30:00"],
        ),
        (
            "0 0 * * *",
            "America/New_York",
            "2026-03-07T12:00:00",
            ["2026-03-08T05:00:00", "2026-03-09T04:00:00"],
        ),
        # 30 December 2011 did not exist.
        ("0 13 * * 0", "Pacific/Apia", "2011-12-29T07:33:35", ["2011-12-31T23:00:00"]),
        # Midnight of 4 November 2018 did not exist.
        ("0 * 4 11 *", "America/Sao_Paulo", "2018-11-03T12:00:00", ["2018-11-04T03:00:00"]),
    ],
)
def test_daylight_saving_time(schedule: str, zone: str, after: str, starts: list[str]) -> None:
    parsed, moment = parse_schedule(schedule, zone), utc(after)
    for start in starts:
        moment = parsed.next(moment)
        assert moment == utc(start)


@pytest.mark.parametrize("schedule", ["0 0 31 2 *", ", * * * *", "* , * * *", "* * , * *", "* * , * ,"])
def test_what_never_starts_is_found_out_quickly(schedule: str) -> None:
    began = process_time()
    assert parse_schedule(schedule, "Europe/Berlin").next(utc("2026-01-01")) is NEVER
    assert process_time() - began < 2


@pytest.mark.parametrize("after", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 31 12 *", "@every 1000h"])
def test_times_at_the_ends_of_the_calendar_raise_nothing(schedule: str, after: str) -> None:
    for zone in ("", "Asia/Tokyo", "America/New_York"):
        assert parse_schedule(schedule, zone).next(utc(after)) is not None


@given(
    schedule=st.sampled_from(
        ["* * * * *", "*/7 3,9 * * 1-5", "0 0 1 * *", "15 2 * 1-11 *", "@every 7m", "@every 36h"]
    ),
    zone=st.sampled_from(["", "Europe/Berlin", "Asia/Kolkata"]),
    start=st.datetimes(datetime(2025, 1, 1), datetime(2026, 1, 1)),
    hours=st.integers(0, 72),
)
def test_the_latest_start_is_the_last_one_when_counting(
    schedule: str, zone: str, start: datetime, hours: int
) -> None:
    parsed, after = parse_schedule(schedule, zone), start.replace(tzinfo=UTC)
    until = after + timedelta(hours=hours)
    last, moment = None, parsed.next(after)
    while moment is not NEVER and moment <= until:
        last, moment = moment, parsed.next(moment)
    assert parsed.latest(after, until) == last


def test_minutes_of_months_are_not_counted_one_by_one() -> None:
    began = process_time()
    latest = parse_schedule("* * * 1-11 *").latest(utc("2020-01-01"), utc("2026-11-17T06:30:20"))
    assert latest == utc("2026-11-17T06:30:00")
    assert process_time() - began < 2


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Mars/Base", "unknown time zone Mars/Base"),
        ("../etc/passwd", "time: invalid location name"),
        ("/etc/localtime", "time: invalid location name"),
        ("America", "unknown time zone America"),
    ],
)
def test_unknown_time_zones_are_refused(name: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        load_zone(name)
