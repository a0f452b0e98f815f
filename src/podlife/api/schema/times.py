"""Times as Go parses and formats them.

`canonical_time` and `canonical_micro_time` return kube-apiserver's text for a time, and raise ValueError in the words
of Go's time package. One expression recognizes the usual case (UTC, seconds).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from podlife.api.codec import format_micro_time, format_time

_DATE = (
    r"(?:(?!0000)[0-9]{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31))"
)
_CLOCK = r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_is_canonical = re.compile(f"{_DATE}{_CLOCK}Z").fullmatch
_is_canonical_micro = re.compile(rf"{_DATE}{_CLOCK}\.[0-9]{{6}}Z").fullmatch

# The parts of Go's layouts in order: the layout's text, its pattern, the largest value.
_PIECES = (
    ("2006", re.compile(r"[0-9]{4}"), 9999, ""),
    ("-", re.compile(r"-"), None, ""),
    ("01", re.compile(r"[0-9]{2}"), 12, "month"),
    ("-", re.compile(r"-"), None, ""),
    ("02", re.compile(r"[0-9]{2}"), 31, "day"),
    ("T", re.compile(r"T"), None, ""),
    ("15", re.compile(r"[0-9]{1,2}"), 23, "hour"),
    (":", re.compile(r":"), None, ""),
    ("04", re.compile(r"[0-9]{2}"), 59, "minute"),
    (":", re.compile(r":"), None, ""),
    ("05", re.compile(r"[0-9]{2}"), 59, "second"),
)
_FRACTION = re.compile(r"[.,][0-9]+")
_MICROS = re.compile(r"\.[0-9]{6}")
_UNPRINTABLE = re.compile(r"[^ -~]")
_ZONE = re.compile(r"Z|[+-]([0-9]{2}):([0-9]{2})")


def canonical_time(text: str) -> str:
    """A metav1.Time: whole seconds, in UTC. Raises ValueError."""
    if _is_canonical(text):
        return text
    return format_time(_parse(text, "2006-01-02T15:04:05Z07:00", micro=False))


def canonical_micro_time(text: str) -> str:
    """A metav1.MicroTime: exactly six digits behind the seconds, in UTC. Raises ValueError."""
    if _is_canonical_micro(text):
        return text
    return format_micro_time(_parse(text, "2006-01-02T15:04:05.000000Z07:00", micro=True))


def _parse(text: str, layout: str, *, micro: bool) -> datetime:
    shown = f"parsing time {_quoted(text)}"
    at, numbers = 0, []

    def refused(piece: str) -> ValueError:
        return ValueError(
            f"{shown} as {_quoted(layout)}: cannot parse {_quoted(text[at:])} as {_quoted(piece)}"
        )

    for piece, pattern, largest, name in _PIECES:
        match = pattern.match(text, at)
        if match is None:
            raise refused(piece)
        if largest is not None:
            numbers.append(int(match[0]))
            if numbers[-1] > largest or (name in ("month", "day") and numbers[-1] == 0):
                raise ValueError(f"{shown}: {name} out of range")
        at = match.end()
    fraction = (_MICROS if micro else _FRACTION).match(text, at)
    if micro and fraction is None:
        raise refused(".000000")
    at = fraction.end() if fraction else at
    zone = _ZONE.match(text, at)
    if zone is None:
        raise refused("Z07:00")
    if zone.end() != len(text):
        raise ValueError(f"{shown}: extra text: {_quoted(text[zone.end() :])}")
    micros = int(fraction[0][1:7].ljust(6, "0")) if fraction else 0
    return _to_datetime(numbers, micros, zone, shown)


def _to_datetime(numbers: list[int], micros: int, zone: re.Match[str], shown: str) -> datetime:
    year, month, day, hour, minute, second = numbers
    if zone[1] and (int(zone[1]) > 24 or int(zone[2]) >= 60):
        unit = "minute" if int(zone[1]) <= 24 else "hour"
        raise ValueError(f"{shown}: time zone offset {unit} out of range")
    offset = (int(zone[1]) * 3600 + int(zone[2]) * 60) * (-1 if zone[0][0] == "-" else 1) if zone[1] else 0
    try:
        time = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)
    except ValueError:
        # Python has no year 0, unlike Go; no client means it.
        raise ValueError(f"{shown}: day out of range") from None
    try:
        return time.fromtimestamp(time.timestamp() - offset, UTC) if offset else time
    except (ValueError, OverflowError):
        raise ValueError(f"{shown}: day out of range") from None


def _quoted(text: str) -> str:
    """As Go's time package quotes: bytes other than printable ASCII as escapes."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = _UNPRINTABLE.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in found[0].encode()), shown)
    return f'"{shown}"'
