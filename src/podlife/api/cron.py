"""Cron schedules in the syntax of CronJobs: five fields, or a descriptor such as `@hourly` or `@every 5m`.

Syntax, error messages and the order of start times are those of Go's robfig/cron, around daylight saving time too. The
work is bounded whatever the schedule: a tenant writes it.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, Protocol

from podlife.api.durations import MAX_SECONDS, parse_go_duration

NEVER = datetime.min.replace(tzinfo=UTC)
"""Go's zero time: no start time was found within five years."""

_SECOND, _MINUTE, _HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
_YEARS_AHEAD = 5
_MAX_INT = 2**63 - 1
_MAX_DIGITS = 19
_DURATION_PART = re.compile(r"([0-9]*\.?[0-9]*)([^.0-9]*)")
_UNITS = ("ns", "us", "µs", "μs", "ms", "s", "m", "h")


class _Bounds(NamedTuple):
    least: int
    most: int
    names: dict[str, int]


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Bounds(0, 59, {}),
    _Bounds(0, 23, {}),
    _Bounds(1, 31, {}),
    _Bounds(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_STARS = ("*", "?")


class Schedule(Protocol):
    def next(self, after: datetime) -> datetime:
        """The first start time after this time, in UTC; NEVER if there is none within five years."""
        ...

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last start time after one time and not after the other, counted from the first one."""
        ...


@dataclass(frozen=True, slots=True)
class EverySchedule:
    """A constant delay, counted from the last start."""

    delay: timedelta

    def next(self, after: datetime) -> datetime:
        try:
            return after.replace(microsecond=0) + self.delay
        except OverflowError:
            return NEVER

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        first = self.next(after)
        if first is NEVER or first > until:
            return None
        return first + (until - first) // self.delay * self.delay


class _Field(NamedTuple):
    values: frozenset[int]
    # It contains a star, so it does not restrict days.
    is_star: bool


@dataclass(frozen=True, slots=True)
class CronSchedule:
    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field
    zone: tzinfo = UTC

    def next(self, after: datetime) -> datetime:
        try:
            return self._search(after) if self._has_starts() else NEVER
        except (OverflowError, ValueError):
            # Beyond the years that exist.
            return NEVER

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        found = self.next(after)
        if found is NEVER or found > until:
            return None
        # By bisection: there may be a start every minute for months.
        low, high = found, until
        while high - low > _SECOND:
            middle = low + (high - low) // 2
            if (start := self.next(middle)) is not NEVER and start <= until:
                low = found = start
            else:
                high = middle
        return found

    def _has_starts(self) -> bool:
        """Fields such as `,` have no value at all: five years of minutes need not be searched for them."""
        if not (self.minutes.values and self.hours.values and self.months.values):
            return False
        days, weekdays = bool(self.days.values), bool(self.weekdays.values)
        return (days and weekdays) if self._is_day_and_weekday() else (days or weekdays)

    def _is_day_and_weekday(self) -> bool:
        return self.days.is_star or self.weekdays.is_star

    def _is_day(self, day: datetime) -> bool:
        is_day = day.day in self.days.values
        is_weekday = day.isoweekday() % 7 in self.weekdays.values
        return (is_day and is_weekday) if self._is_day_and_weekday() else (is_day or is_weekday)

    def _search(self, after: datetime) -> datetime:
        """Increments the largest field that does not match, and begins again. The smaller fields are reset once, when
        the first field is incremented."""
        local = (after.replace(microsecond=0) + _SECOND).astimezone(self.zone)
        limit = local.year + _YEARS_AHEAD
        is_reset = False
        while local.year <= limit:
            before = start = local
            if local.month not in self.months.values:
                if not is_reset:
                    start = self._at(local.year, local.month)
                local = self._at(start.year, start.month + 1, start.day, start.hour)
            elif not self._is_day(local):
                if not is_reset:
                    start = self._at(local.year, local.month, local.day)
                local = self._midnight(self._at(start.year, start.month, start.day + 1, start.hour))
            elif local.hour not in self.hours.values:
                if not is_reset:
                    start = self._at(local.year, local.month, local.day, local.hour)
                local = self._plus(start, _HOUR)
            elif local.minute not in self.minutes.values or local.second:
                local = self._plus(local, _MINUTE - timedelta(seconds=local.second))
            else:
                return local.astimezone(UTC)
            if is_reset and local.timestamp() <= before.timestamp():
                # A day that a time zone leaves out, as Samoa did: Go searches it forever.
                local = self._plus(before, _HOUR)
            is_reset = True
        return NEVER

    def _midnight(self, local: datetime) -> datetime:
        """Where midnight does not exist because of daylight saving time, the time next to it."""
        if local.hour > 12:
            return self._plus(local, (24 - local.hour) * _HOUR)
        return self._plus(local, -local.hour * _HOUR) if local.hour else local

    def _plus(self, local: datetime, delta: timedelta) -> datetime:
        return (local.astimezone(UTC) + delta).astimezone(self.zone)

    def _at(self, year: int, month: int, day: int = 1, hour: int = 0) -> datetime:
        """Go's time.Date: months and days beyond the last one are carried over, and of a time that exists twice or not
        at all it is the one that Go selects."""
        wall = datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, hour, tzinfo=UTC)
        wall += timedelta(days=day - 1)
        if offset := self._offset(wall):
            offset = self._offset(wall - offset)
        return (wall - offset).astimezone(self.zone)

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or timedelta(0)


def load_zone(name: str) -> tzinfo:
    """The time zone of this name; an empty one is UTC. Raises ValueError in Go's words."""
    if name in ("", "UTC"):
        return UTC
    if ".." in name or name[0] in "/\\":
        raise ValueError("time: invalid location name")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name}") from None


def parse_schedule(text: str, zone: str = "") -> Schedule:
    """Raises ValueError in upstream's words if the schedule cannot be parsed or its time zone is unknown. A zone within
    the text takes precedence: the API refuses it in new objects."""
    location = load_zone(zone)
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, space, text = text.partition(" ")
        if not space:
            # The panic of the Go library, which upstream recovers.
            raise ValueError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        name = prefix.partition("=")[2]
        try:
            location = load_zone(name)
        except ValueError as error:
            raise ValueError(f"provided bad location {name}: {error}") from None
        text = text.strip()
    if text.startswith("@every "):
        return _parse_every(text)
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, hours, days, months, weekdays = map(_parse_field, parts, _FIELDS)
    return CronSchedule(minutes, hours, days, months, weekdays, location)


def _parse_every(descriptor: str) -> EverySchedule:
    text = descriptor.removeprefix("@every ")
    seconds = parse_go_duration(text)
    if seconds is None or abs(seconds) >= MAX_SECONDS:
        raise ValueError(f"failed to parse duration {descriptor}: time: {_duration_problem(text)}")
    return EverySchedule(timedelta(seconds=max(1, int(seconds))))


def _duration_problem(text: str) -> str:
    """Why Go's time.ParseDuration refuses it."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    while rest and (part := _DURATION_PART.match(rest)) is not None:
        number, unit = part.groups()
        if number in ("", "."):
            break
        if not unit:
            return f'missing unit in duration "{text}"'
        if unit not in _UNITS:
            return f'unknown unit "{unit}" in duration "{text}"'
        rest = rest[part.end() :]
    return f'invalid duration "{text}"'


def _parse_field(text: str, bounds: _Bounds) -> _Field:
    ranges = [_parse_range(each, bounds) for each in text.split(",") if each]
    return _Field(frozenset().union(*(each.values for each in ranges)), any(each.is_star for each in ranges))


def _parse_range(text: str, bounds: _Bounds) -> _Field:
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    is_star = low in _STARS
    if is_star:
        start, end = bounds.least, bounds.most
    else:
        start = end = _number(low, bounds)
        if len(highs) == 1:
            end = _number(highs[0], bounds)
        elif highs:
            raise ValueError(f"too many hyphens: {text}")
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = _plain_number(steps[0]) if steps else 1
    if steps and not highs:
        # From this value to the last one.
        end = bounds.most
    if start < bounds.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({bounds.least}): {text}")
    if end > bounds.most:
        raise ValueError(f"end of range ({end}) above maximum ({bounds.most}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")
    return _Field(frozenset(range(start, end + 1, step)), is_star and step == 1)


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return named if named is not None else _plain_number(text)


def _plain_number(text: str) -> int:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text.removeprefix("+"))
    problem, number = "", 0
    if not digits.isascii() or not digits.isdigit():
        problem = "invalid syntax"
    elif len(digits.lstrip("0")) > _MAX_DIGITS or (number := int(digits.lstrip("0") or "0")) > _MAX_INT:
        problem = "value out of range"
    if problem:
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {problem}')
    if sign and number:
        raise ValueError(f"negative number (-{number}) not allowed: {text}")
    return number
