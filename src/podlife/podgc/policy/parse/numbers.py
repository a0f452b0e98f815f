"""Parses integers, durations, percentages and times of day of a policy file.

As in `reading_values`, a function returns the value, or None after it has reported an error.
"""

from __future__ import annotations

import re
from datetime import time
from decimal import Decimal

import yaml

from podlife.api.durations import DURATION_WITH_DAYS, MAX_SECONDS, NUMBER, parse_duration_with_days
from podlife.podgc.policy.parse.values import kind_of, shown, wrong_kind
from podlife.podgc.policy.parse.yaml_nodes import Diagnostics, YamlNode, is_told

# Also used in the JSON schema, hence the anchors.
SHARE = r"^(?!0*\.?0*%)(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?)%$"
CLOCK = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


def read_number(notes: Diagnostics, node: YamlNode, path: str, least: int, why_least: str = "") -> int | None:
    """An integer in decimal digits; `why_least` is what to do instead of a smaller value."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, "an integer")
        return None
    text = node.value
    if node.style is not None and _DIGITS.fullmatch(text):
        notes.add(node, f"{path}: expected an integer, got a string: write {text} without quotes")
        return None
    if kind_of(node) != "int" or not _DIGITS.fullmatch(text):
        notes.add(
            node, f"{path}: invalid integer {shown(text)}: use decimal digits, for example {_plain(node)}"
        )
        return None
    number = int(text)
    if number < least:
        notes.add(
            node, f"{path}: must be at least {least}, got {text}{f': {why_least}' if why_least else ''}"
        )
        return None
    return number


def read_duration(notes: Diagnostics, node: YamlNode, path: str) -> float | None:
    """Seconds, from 40s, 1m30s, 12h or 7d."""
    text = _raw(notes, node, path, "a duration: write 40s, 1h30m or 7d")
    if text is None:
        return None
    seconds = parse_duration_with_days(text)
    if seconds is not None:
        if seconds < MAX_SECONDS:
            return seconds
        notes.add(node, f"{path}: duration {shown(text)} exceeds the maximum (106751d)")
        return None
    notes.add(node, f"{path}: invalid duration {shown(text)}: {_duration_instead(text)}")
    return None


def _duration_instead(text: str) -> str:
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
    return "write 40s, 1h30m or 7d"


def read_share(notes: Diagnostics, node: YamlNode, path: str) -> float | None:
    """A fraction above 0 and at most 1, from 50%."""
    text = _raw(notes, node, path, "a percentage: write 50%")
    if text is None:
        return None
    if re.fullmatch(SHARE, text):
        return float(Decimal(text[:-1]) / 100)
    number = text.removesuffix("%").strip()
    if not re.fullmatch(NUMBER, number):
        notes.add(node, f"{path}: invalid percentage {shown(text)}: for example 50%")
    elif Decimal(number) == 0:
        notes.add(
            node,
            f"{path}: percentage must be greater than 0, got {shown(text)}: use observeOnly: true to delete nothing",
        )
    elif text.endswith("%") and Decimal(number) > 100:
        notes.add(node, f"{path}: percentage {shown(text)} exceeds the maximum (100%)")
    else:
        instead = Decimal(number) * 100 if "." in number and Decimal(number) <= 1 else Decimal(number)
        notes.add(node, f"{path}: invalid percentage {shown(text)}: write {instead.normalize():f}%")
    return None


def read_clock(notes: Diagnostics, node: YamlNode, path: str) -> time | None:
    """A time of day, as "22:00"; 24:00 is the midnight at its end."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, 'a time: write "22:00"')
        return None
    text = node.value
    is_time = re.fullmatch(CLOCK, text) is not None or (text == "24:00" and path.endswith(".to"))
    if is_time and kind_of(node) == "str":
        return time(int(text[:2]) % 24, int(text[3:]))
    if is_time:
        # A sexagesimal integer in YAML 1.1.
        notes.add(node, f'{path}: expected a string, but YAML reads {text} as a number: write "{text}"')
    elif re.fullmatch(CLOCK, f"0{text}"):
        notes.add(node, f'{path}: invalid time {shown(text)}: write "0{text}"')
    else:
        notes.add(node, f'{path}: invalid time {shown(text)}: expected "00:00" to "23:59"')
    return None


def _raw(notes: Diagnostics, node: YamlNode, path: str, expected: str) -> str | None:
    """The text as written, whatever its YAML type."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, expected)
        return None
    return str(node.value)


def _plain(node: yaml.ScalarNode) -> str:
    """The number that was probably meant: 1e3 is 1000, 010 is 10."""
    text = node.value.replace("_", "")
    try:
        number = float(text) if len(text) < 20 else 5.0
    except ValueError:
        number = float(int(text, 16)) if re.fullmatch("0x[0-9a-fA-F]{1,12}", text) else 5.0
    return str(int(number)) if 0 <= number < 1e15 and number == int(number) else "5"
