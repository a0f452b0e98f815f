"""Windows against a calendar that is walked through minute by minute, over the days on which clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.podgc.guards.windows import is_open, opens_at
from podlife.podgc.policy.model import Window

MINUTE = timedelta(minutes=1)
DAY, WEEK = 24 * 60, 7 * 24 * 60
# Two days before the clocks go forward and back; a window that is left out then comes a week later.
BEGINNINGS = {
    "Europe/Berlin": (datetime(2026, 3, 27, tzinfo=UTC), datetime(2026, 10, 23, tzinfo=UTC)),
    "America/New_York": (datetime(2026, 3, 6, tzinfo=UTC), datetime(2026, 10, 30, tzinfo=UTC)),
    "UTC": (datetime(2026, 3, 27, tzinfo=UTC),),
}
DAYS = 17

times = st.builds(time, st.sampled_from((0, 1, 2, 3, 6, 22, 23)), st.sampled_from((0, 1, 30, 59)))
windows = st.builds(
    Window,
    days=st.frozensets(st.integers(0, 6), min_size=1),
    start=times,
    end=times,
    zone=st.sampled_from(tuple(BEGINNINGS)),
)


@lru_cache
def calendar(zone: str, beginning: datetime) -> tuple[int, ...]:
    """What minute of the week the clock on the wall shows, for every minute."""
    moments = (beginning + number * MINUTE for number in range(DAYS * DAY))
    walls = (moment.astimezone(ZoneInfo(zone)) for moment in moments)
    return tuple(wall.weekday() * DAY + wall.hour * 60 + wall.minute for wall in walls)


def minutes_of(window: Window) -> set[int]:
    """The minutes of the week that the window has."""
    start, end = (each.hour * 60 + each.minute for each in (window.start, window.end))
    length = (end - start) % DAY or DAY
    return {(day * DAY + start + number) % WEEK for day in window.days for number in range(length)}


@settings(max_examples=200, deadline=None)
@given(window=windows, place=st.integers(0, 1), offset=st.integers(0, 3 * DAY))
def test_a_window_opens_and_is_open_when_the_clock_on_the_wall_says_so(
    window: Window, place: int, offset: int
) -> None:
    beginnings = BEGINNINGS[window.zone]
    beginning = beginnings[place % len(beginnings)]
    shown, wanted = calendar(window.zone, beginning), minutes_of(window)
    now = beginning + offset * MINUTE
    assert is_open((window,), now) == (shown[offset] in wanted)
    first = next(number for number in range(offset, len(shown)) if shown[number] in wanted)
    assert opens_at((window,), now) == beginning + first * MINUTE


@settings(max_examples=100, deadline=None)
@given(some=st.lists(windows, max_size=3), offset=st.integers(0, 3 * DAY), seconds=st.integers(0, 59))
def test_several_windows_are_open_when_one_is_and_none_is_always(
    some: list[Window], offset: int, seconds: int
) -> None:
    now = BEGINNINGS["UTC"][0] + offset * MINUTE + timedelta(seconds=seconds)
    assert is_open(some, now) == (not some or any(is_open((window,), now) for window in some))
    assert opens_at(some, now) == min((opens_at((window,), now) or now for window in some), default=now)


@pytest.mark.parametrize(
    ("window", "now", "opens"),
    [
        # 02:00 to 03:00 does not exist in Berlin on the last Sunday of March 2026.
        (Window(frozenset({6}), time(2), time(3), "Europe/Berlin"), "2026-03-28T23:00", "2026-04-05T00:00"),
        # What begins in the hour that is left out begins when that is over.
        (
            Window(frozenset({6}), time(2, 30), time(4), "Europe/Berlin"),
            "2026-03-28T23:00",
            "2026-03-29T01:00",
        ),
        # Twice 02:00 to 02:30: the second begins where the clocks are put back.
        (
            Window(frozenset({6}), time(2), time(2, 30), "Europe/Berlin"),
            "2026-10-25T00:40",
            "2026-10-25T01:00",
        ),
        # Over midnight, from Friday on.
        (
            Window(frozenset({4}), time(22), time(6), "America/New_York"),
            "2026-03-06T12:00",
            "2026-03-07T03:00",
        ),
    ],
)
def test_clocks_that_are_changed(window: Window, now: str, opens: str) -> None:
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (now, opens)]
    assert opens_at((window,), moments[0]) == moments[1]


def test_a_window_on_no_day_never_opens() -> None:
    assert opens_at((Window(days=frozenset()),), datetime(2026, 1, 1, tzinfo=UTC)) is None
