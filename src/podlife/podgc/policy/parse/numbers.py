"""Integers, durations, percentages and times of day of a policy file."""

from __future__ import annotations

import re
from datetime import time
from decimal import Decimal

import yaml

from podlife.api.durations import (
    DURATION_WITH_DAYS,
    MAX_SECONDS,
    NUMBER,
    format_exact,
    parse_duration_with_days,
)
from podlife.podgc.policy.parse.values import (
    InvalidScalarError,
    ValueType,
    kind_of,
    reference,
    scalar,
    shown,
    text_schema,
)

# Also used in the JSON schema, hence the anchors.
SHARE_PATTERN = r"^(?!0*(?:\.0*)?%)(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?)%$"
_CLOCK = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"
# Longer input gets no suggestion of its own.
_MAX_SUGGESTED = 60
_DURATIONS = "40s, 1h30m or 7d"
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


def read_integer(node: yaml.ScalarNode, minimum: int, why_minimum: str = "") -> int:
    """An integer in decimal digits; `why_minimum` is what to do instead of a smaller value."""
    text = node.value
    if node.style is not None and _DIGITS.fullmatch(text):
        raise InvalidScalarError(f"expected an integer, got a string: write {text} without quotes")
    if kind_of(node) != "int" or not _DIGITS.fullmatch(text):
        raise InvalidScalarError(
            f"invalid integer {shown(text)}: use decimal digits, for example {_plain(node)}"
        )
    if int(text) < minimum:
        why = f": {why_minimum}" if why_minimum else ""
        raise InvalidScalarError(f"must be at least {minimum}, got {text}{why}")
    return int(text)


def integer(minimum: int, why_minimum: str = "") -> ValueType:
    read = scalar(lambda node: read_integer(node, minimum, why_minimum), "an integer")
    return ValueType(read, {"type": "integer", "minimum": minimum})


def _plain(node: yaml.ScalarNode) -> str:
    """The number that was probably meant: 1e3 is 1000, 010 is 10."""
    text = node.value.replace("_", "")
    try:
        number = float(text) if len(text) < 20 else 5.0
    except ValueError:
        number = float(int(text, 16)) if re.fullmatch("0x[0-9a-fA-F]{1,12}", text) else 5.0
    return str(int(number)) if 0 <= number < 1e15 and number == int(number) else "5"


# Durations


def read_duration(node: yaml.ScalarNode) -> float:
    """Seconds, from 40s, 1m30s, 12h or 7d."""
    text = str(node.value)
    seconds = parse_duration_with_days(text)
    if seconds is None:
        raise InvalidScalarError(f"invalid duration {shown(text)}: {_suggest_duration(text)}")
    if seconds >= MAX_SECONDS:
        raise InvalidScalarError(f"duration {shown(text)} exceeds the maximum (106751d)")
    return seconds


def _suggest_duration(text: str) -> str:
    if len(text) > _MAX_SUGGESTED:
        return f"write {_DURATIONS}"
    if re.fullmatch(NUMBER, text):
        return f"missing unit, write {text}s, {text}m, {text}h or {text}d"
    if text.startswith("-"):
        return "must not be negative"
    if match := re.fullmatch(r"([0-9]+):([0-9]{2})(?::([0-9]{2}))?", text):
        hours, minutes, seconds = match.groups()
        return f"write {int(hours)}h{int(minutes)}m{f'{int(seconds)}s' if seconds else ''}"
    if re.fullmatch(DURATION_WITH_DAYS, joined := "".join(text.split())):
        return f"write {joined}, without spaces"
    if match := re.fullmatch(r"([0-9]+) *w(?:eeks?)?", text):
        return f"write {int(match[1]) * 7}d"
    if match := re.fullmatch(r"([0-9]+) *(days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|[DHMS])", text):
        return f"write {match[1]}{match[2][0].lower()}"
    return f"write {_DURATIONS}"


DURATION_KIND = ("a duration", _DURATIONS)
DURATION = ValueType(scalar(read_duration, *DURATION_KIND), reference("duration"), format_exact)


# Percentages


def _read_share(node: yaml.ScalarNode) -> float:
    """A fraction above 0 and at most 1, from 50%."""
    text = str(node.value)
    if re.fullmatch(SHARE_PATTERN, text):
        return float(Decimal(text[:-1]) / 100)
    number = text.removesuffix("%").strip()
    if not re.fullmatch(NUMBER, number) or len(number) > _MAX_SUGGESTED:
        raise InvalidScalarError(f"invalid percentage {shown(text)}: for example 50%")
    if Decimal(number) == 0:
        raise InvalidScalarError(
            f"percentage must be greater than 0, got {shown(text)}: use observeOnly: true to delete nothing"
        )
    if text.endswith("%") and Decimal(number) > 100:
        raise InvalidScalarError(f"percentage {shown(text)} exceeds the maximum (100%)")
    instead = Decimal(number) * 100 if "." in number and Decimal(number) <= 1 else Decimal(number)
    raise InvalidScalarError(f"invalid percentage {shown(text)}: write {instead.normalize():f}%")


def format_share(share: float) -> str:
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


SHARE = ValueType(scalar(_read_share, "a percentage", "50%"), reference("share"), format_share)


# Times of day


def _read_clock(node: yaml.ScalarNode, *, is_end: bool) -> time:
    """A time of day, as "22:00"; for an end, 24:00 is the midnight after it."""
    text = node.value
    if re.fullmatch(_CLOCK, text) is not None or (text == "24:00" and is_end):
        if kind_of(node) == "str":
            return time(int(text[:2]) % 24, int(text[3:]))
        # A sexagesimal integer in YAML 1.1.
        raise InvalidScalarError(f'expected a string, but YAML reads {text} as a number: write "{text}"')
    if re.fullmatch(_CLOCK, f"0{text}"):
        raise InvalidScalarError(f'invalid time {shown(text)}: write "0{text}"')
    raise InvalidScalarError(f'invalid time {shown(text)}: expected "00:00" to "23:59"')


START = ValueType(
    scalar(lambda node: _read_clock(node, is_end=False), "a time", '"22:00"'),
    text_schema(pattern=_CLOCK),
    "{:%H:%M}".format,
)
END = ValueType(
    scalar(lambda node: _read_clock(node, is_end=True), "a time", '"22:00"'),
    text_schema(pattern=f"{_CLOCK}|^24:00$"),
    lambda end: f"{end:%H:%M}" if end.hour or end.minute else "24:00",
)
