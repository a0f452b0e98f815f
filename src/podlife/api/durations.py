"""Durations as text: Go's notation, with days where podlife's own files allow them, and kubectl's short form."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DAYS = {**_UNITS, "d": 86_400.0}
# A number as Go reads it: 1, 1.5, 1. and .5. There is one way to match one, or long texts would take quadratic time.
NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
# Anchored, because the JSON schema of the policy file uses it too.
DURATION_WITH_DAYS = rf"^(?:0|(?:{NUMBER}(?:{'|'.join(_DAYS)}))+)$"
_GO_DURATION = re.compile(rf"[-+]?(?:0|(?:{NUMBER}(?:{'|'.join(_UNITS)}))+)")
_PART = re.compile(rf"({NUMBER})({'|'.join(_DAYS)})")
# The maximum of Go's time.Duration, about 292 years.
MAX_SECONDS = 2.0**63 / 1e9

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_DAY_HOURS = 24
_YEAR_HOURS = 365 * _DAY_HOURS


def parse_go_duration(text: str) -> float | None:
    """Seconds of 40s, -1m30s or 500ms, as Go's time.ParseDuration; None if it is invalid."""
    if _GO_DURATION.fullmatch(text) is None:
        return None
    return -_sum(text) if text.startswith("-") else _sum(text)


def parse_duration_with_days(text: str) -> float | None:
    """Seconds of 40s, 1h30m or 7d; None if it is invalid or negative."""
    return _sum(text) if re.fullmatch(DURATION_WITH_DAYS, text) else None


def _sum(text: str) -> float:
    return sum(float(number) * _DAYS[unit] for number, unit in _PART.findall(text))


def format_go_duration(seconds: float) -> str:
    """As Go's Duration.String: 40s, 1m20s, 5m0s."""
    minutes, rest = divmod(seconds, _MINUTE)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def format_one_unit(seconds: float) -> str:
    """In the largest unit of Go's that is exact: 720h, 90s."""
    for unit, size in (("h", _HOUR), ("m", _MINUTE)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def format_exact(seconds: float) -> str:
    """Exactly, as a policy file writes it: 7d, 1h30m, 40s, 0.5s."""
    if seconds != int(seconds):
        return f"{Decimal(repr(seconds)):f}s"
    return "".join(_parts(int(seconds))) or "0s"


def format_duration(seconds: float) -> str:
    """Rounded to two units: 3d4h, 2m5s, 40s."""
    return "".join(_parts(max(0, round(seconds)))[:2]) or "0s"


def _parts(seconds: int) -> list[str]:
    left, parts = seconds, []
    for unit, size in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return parts


def human_duration(seconds: float) -> str:
    """kubectl's short form with two or three significant figures: `90s`, `5m10s`, `3h`, `2y30d`.

    Down to -2 s is treated as clock skew and shown as `0s`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two_units(whole, _MINUTE, "m", "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two_units(whole // _MINUTE, 60, "h", "m")
    return _many_hours(whole // _HOUR)


def _many_hours(hours: int) -> str:
    if hours < 2 * _DAY_HOURS:
        return f"{hours}h"
    if hours < 8 * _DAY_HOURS:
        return _two_units(hours, _DAY_HOURS, "d", "h")
    if hours < 2 * _YEAR_HOURS:
        return f"{hours // _DAY_HOURS}d"
    if hours < 8 * _YEAR_HOURS:
        return _two_units(hours // _DAY_HOURS, 365, "y", "d")
    return f"{hours // _YEAR_HOURS}y"


def _two_units(amount: int, size: int, large: str, small: str) -> str:
    whole, rest = divmod(amount, size)
    return f"{whole}{large}{rest}{small}" if rest else f"{whole}{large}"
