"""Timestamps and durations of CEL: texts, limits, calendar fields."""

from __future__ import annotations

import datetime
import re
import zoneinfo

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.values import Duration, Timestamp

NANOS = 10**9
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EARLIEST, _LATEST = -62135596800, 253402300799
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": NANOS,
    "m": 60 * NANOS,
    "h": 3600 * NANOS,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
).fullmatch
_LONGEST = 64


def parse_duration(text: str) -> Duration:
    """Go's notation: `1h30m`. Raises ValueError."""
    if len(text) > _LONGEST:
        raise ValueError("invalid duration")
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    position, total = 0, 0
    while position < len(body):
        match = _PART.match(body, position)
        if match is None or not (match[1] or match[2]):
            raise ValueError("invalid duration")
        unit = _UNITS[match[3]]
        fraction = match[2] or ""
        total += int(match[1] or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)
        position = match.end()
    total = -total if text.startswith("-") else total
    if not body or not -(2**63) <= total < 2**63:
        raise ValueError("invalid duration")
    return Duration(total)


def parse_timestamp(text: str) -> Timestamp:
    """RFC 3339. Raises ValueError."""
    match = _TIMESTAMP(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError("invalid timestamp")
    year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
    moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
    zone, offset = match[8], 0
    if zone not in "Zz":
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        if int(zone[1:3]) > 24 or int(zone[4:6]) > 60:
            raise ValueError("invalid timestamp")
        offset = offset if zone[0] == "+" else -offset
    nanos = int((match[7] or "0")[:9].ljust(9, "0"))
    return bounded_timestamp((seconds - offset) * NANOS + nanos, offset)


def bounded_timestamp(nanos: int, offset_seconds: int = 0) -> Timestamp:
    """Raises EvaluationError outside of the years 1 to 9999."""
    if not _EARLIEST * NANOS <= nanos < (_LATEST + 1) * NANOS:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanos, offset_seconds)


def bounded_duration(nanos: int) -> Duration:
    if not -(2**63) <= nanos < 2**63:
        raise EvaluationError("duration overflow")
    return Duration(nanos)


def timestamp_text(moment: Timestamp) -> str:
    seconds, nanos = divmod(moment.nanos, NANOS)
    offset = moment.offset_seconds
    try:
        shown = (_EPOCH + datetime.timedelta(seconds=seconds + offset)).replace(tzinfo=None).isoformat()
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    zone = f"{sign}{minutes // 60:02}:{minutes % 60:02}" if offset else "Z"
    return f"{shown}{fraction}{zone}"


def duration_text(duration: Duration) -> str:
    sign = "-" if duration.nanos < 0 else ""
    seconds, nanos = divmod(abs(duration.nanos), NANOS)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    return f"{sign}{seconds}{fraction}s"


def _in_zone(moment: Timestamp, zone: str | None) -> datetime.datetime:
    seconds = moment.nanos // NANOS
    try:
        utc = _EPOCH + datetime.timedelta(seconds=seconds)
        if zone is None or zone in ("", "UTC"):
            return utc
        if match := re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone, re.ASCII):
            minutes = int(match[2]) * 60 + int(match[3])
            return utc + datetime.timedelta(minutes=-minutes if match[1] == "-" else minutes)
        return utc.astimezone(zoneinfo.ZoneInfo(zone))
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None


def timestamp_field(name: str, moment: Timestamp, zone: str | None = None) -> int:
    if name == "getMilliseconds":
        return moment.nanos % NANOS // 10**6
    local = _in_zone(moment, zone)
    fields = {
        "getFullYear": local.year,
        "getMonth": local.month - 1,
        "getDate": local.day,
        "getDayOfMonth": local.day - 1,
        "getDayOfWeek": local.isoweekday() % 7,
        "getDayOfYear": local.timetuple().tm_yday - 1,
        "getHours": local.hour,
        "getMinutes": local.minute,
        "getSeconds": local.second,
    }
    return fields[name]


def duration_field(name: str, duration: Duration) -> int:
    unit = {
        "getHours": 3600 * NANOS,
        "getMinutes": 60 * NANOS,
        "getSeconds": NANOS,
        "getMilliseconds": 10**6,
    }[name]
    whole = abs(duration.nanos) // unit
    return -whole if duration.nanos < 0 else whole
