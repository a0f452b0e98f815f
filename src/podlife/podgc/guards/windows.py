"""Deletion windows: times of the week in the local time of a time zone.

Local time decides: a window inside the hour that is skipped when clocks go forward does not open that day; one inside
the hour that is repeated when they go back opens twice. Without windows, deletions are always allowed. Pure; that a
zone exists is checked by the parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from podlife.podgc.policy.model import Window

_DAY = timedelta(days=1)
# A window opens at least once a week, but a clock change may skip it once; midnight depends on the time zone.
_MOST_DAYS = 16
_EXACT = timedelta(seconds=1)


def is_open(windows: Sequence[Window], now: datetime) -> bool:
    return not windows or any(_has(window, now) for window in windows)


def opens_at(windows: Sequence[Window], now: datetime) -> datetime | None:
    """The earliest time from now on that is in a window; now if one is open, None if none ever opens."""
    if is_open(windows, now):
        return now
    found = [moment for window in windows if (moment := _first(window, now)) is not None]
    return min(found, default=None)


def _has(window: Window, now: datetime) -> bool:
    there = now.astimezone(ZoneInfo(window.zone))
    day, wall = there.weekday(), there.time()
    if window.start < window.end:
        return day in window.days and window.start <= wall < window.end
    if day in window.days and wall >= window.start:
        return True
    return (day - 1) % 7 in window.days and wall < window.end


def _first(window: Window, now: datetime) -> datetime | None:
    """A window opens when local time reaches its start, or a clock change moves into it."""
    zone = ZoneInfo(window.zone)
    today = now.astimezone(zone).date()
    moments = {*_starts(window, zone, today), *_changes(zone, now)}
    return next((moment for moment in sorted(moments) if moment > now and _has(window, moment)), None)


def _starts(window: Window, zone: ZoneInfo, today: date) -> Iterator[datetime]:
    for day in range(-1, _MOST_DAYS):
        wall = datetime.combine(today + day * _DAY, window.start, zone)
        yield from (wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _changes(zone: ZoneInfo, now: datetime) -> Iterable[datetime]:
    """The next clock changes of the time zone."""
    since = now.astimezone(UTC).replace(microsecond=0)
    for _ in range(_MOST_DAYS):
        until = since + _DAY
        if _offset(zone, since) != _offset(zone, until):
            yield _change_between(zone, since, until)
        since = until


def _change_between(zone: ZoneInfo, since: datetime, until: datetime) -> datetime:
    before = _offset(zone, since)
    while until - since > _EXACT:
        middle = since + timedelta(seconds=(until - since).total_seconds() // 2)
        if _offset(zone, middle) == before:
            since = middle
        else:
            until = middle
    return until


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()
