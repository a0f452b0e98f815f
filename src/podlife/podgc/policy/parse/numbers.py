"""Numbers, lengths of time, shares and times of day out of a policy file, and what is wrong with them.

As in `reading_values`, a function gives the value, or None after it has noted what is wrong.
"""

from __future__ import annotations

import re
from datetime import time
from decimal import Decimal

import yaml

from podlife.api.durations import DURATION_WITH_DAYS, MAX_SECONDS, NUMBER, parse_duration_with_days
from podlife.podgc.policy.parse.values import kind_of, shown, wrong_kind
from podlife.podgc.policy.parse.yaml_nodes import Node, Notes, is_told

__all__ = ["CLOCK", "SHARE", "read_clock", "read_duration", "read_number", "read_share"]

# Also used in the JSON schema, hence the anchors.
SHARE = r"^(?!0*\.?0*%)(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?)%$"
CLOCK = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


def read_number(notes: Notes, node: Node, path: str, least: int, why_least: str = "") -> int | None:
    """A whole number in plain digits; `why_least` says what to write instead of a smaller one."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, "a whole number")
        return None
    text = node.value
    if node.style is not None and _DIGITS.fullmatch(text):
        notes.add(node, f"{path} is a text here: write {text} without quotes")
        return None
    if kind_of(node) != "int" or not _DIGITS.fullmatch(text):
        notes.add(
            node, f"{path} {shown(text)} must be a whole number: write it in plain digits, as {_plain(node)}"
        )
        return None
    number = int(text)
    if number < least:
        notes.add(node, f"{path} {text} is less than {least}: {why_least or f'write {least} or more'}")
        return None
    return number


def read_duration(notes: Notes, node: Node, path: str) -> float | None:
    """Seconds, of 40s, 1m30s, 12h or 7d."""
    text = _raw(notes, node, path, "a length of time: write 40s, 1h30m or 7d")
    if text is None:
        return None
    seconds = parse_duration_with_days(text)
    if seconds is not None:
        if seconds < MAX_SECONDS:
            return seconds
        notes.add(node, f"{path} {shown(text)} is longer than anybody waits: write at most 106751d")
        return None
    notes.add(node, f"{path} {shown(text)} is no length of time: {_duration_instead(text)}")
    return None


def _duration_instead(text: str) -> str:
    if re.fullmatch(NUMBER, text):
        return f"it has no unit; write {text}s, {text}m, {text}h or {text}d"
    if text.startswith("-"):
        return "it lies in the past; write how long to wait"
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


def read_share(notes: Notes, node: Node, path: str) -> float | None:
    """A part of all, above 0 and at most 1, of 50%."""
    text = _raw(notes, node, path, "a percentage: write 50%")
    if text is None:
        return None
    if re.fullmatch(SHARE, text):
        return float(Decimal(text[:-1]) / 100)
    number = text.removesuffix("%").strip()
    if not re.fullmatch(NUMBER, number):
        notes.add(node, f"{path} {shown(text)} is no percentage: write it as 50%")
    elif Decimal(number) == 0:
        notes.add(
            node,
            f"{path} {shown(text)} would let nothing go: to change nothing write observeOnly: true instead",
        )
    elif text.endswith("%") and Decimal(number) > 100:
        notes.add(node, f"{path} {shown(text)} is more than all: write at most 100%")
    else:
        instead = Decimal(number) * 100 if "." in number and Decimal(number) <= 1 else Decimal(number)
        notes.add(node, f"{path} {shown(text)} is no percentage: write {instead.normalize():f}%")
    return None


def read_clock(notes: Notes, node: Node, path: str) -> time | None:
    """A time of the day, as "22:00"; 24:00 is the midnight that ends it."""
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
        # Minutes of an hour to one reader, a number of base 60 to another.
        notes.add(node, f'{path}: YAML reads {text} as a number: put it in quotes, "{text}"')
    elif re.fullmatch(CLOCK, f"0{text}"):
        notes.add(node, f'{path} {shown(text)} is no time: write "0{text}"')
    else:
        notes.add(node, f'{path} {shown(text)} is no time: write hours and minutes from "00:00" to "23:59"')
    return None


def _raw(notes: Notes, node: Node, path: str, expected: str) -> str | None:
    """The text as it was written, whatever YAML makes of it."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or kind_of(node) == "null":
        wrong_kind(notes, node, path, expected)
        return None
    return str(node.value)


def _plain(node: yaml.ScalarNode) -> str:
    """The number that was meant, as far as one can tell: 1e3 is 1000, 010 was hardly meant to be 8."""
    text = node.value.replace("_", "")
    try:
        number = float(text) if len(text) < 20 else 5.0
    except ValueError:
        number = float(int(text, 16)) if re.fullmatch("0x[0-9a-fA-F]{1,12}", text) else 5.0
    return str(int(number)) if 0 <= number < 1e15 and number == int(number) else "5"
