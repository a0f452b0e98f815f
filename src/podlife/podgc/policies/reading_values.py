"""Single values of a policy file: texts, numbers, lengths of time, shares, and what is wrong with them.

YAML reads more into a plain word than its writer does: `on` is true, 22:00 is 1320, 010 is 8. Nothing here is taken
that another reader of YAML could take for something else; the mistake says what to write instead. Each function gives
the value, or None after it has noted what is wrong. `path` is how the value is called.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from datetime import time
from decimal import Decimal
from typing import TypeVar

import yaml

from podlife.podgc.policies.reading_nodes import Node, Notes, is_told

__all__ = [
    "CLOCK",
    "DURATION",
    "SHARE",
    "Field",
    "one_of",
    "read_clock",
    "read_duration",
    "read_fields",
    "read_list",
    "read_mapping",
    "read_number",
    "read_share",
    "read_text",
    "read_truth",
    "shown",
]

T = TypeVar("T")
Field = Callable[[Notes, Node, str], object]

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_PART = re.compile(rf"({_NUMBER})({'|'.join(_UNITS)})")
# The same texts for the schema, which is why they begin and end with their anchors.
DURATION = rf"^(?:0|(?:{_NUMBER}(?:{'|'.join(_UNITS)}))+)$"
SHARE = r"^(?!0*\.?0*%)(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?)%$"
CLOCK = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
# What Go's durations can hold, some 292 years.
_MOST_SECONDS = 2.0**63 / 1e9
_MOST_SHOWN = 60
_TAG = "tag:yaml.org,2002:"


def shown(text: str) -> str:
    """What was written, in quotes and not too long."""
    short = text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
    return repr(short)


# Mappings and lists


def read_mapping(notes: Notes, node: Node, path: str, known: Collection[str]) -> dict[str, tuple[Node, Node]]:
    """Keys and values by the keys' names; unknown keys and those that are there twice are noted and left out."""
    found: dict[str, tuple[Node, Node]] = {}
    if not isinstance(node, yaml.MappingNode):
        _wrong_kind(notes, node, path, f"a mapping with {', '.join(known)}")
        return found
    for key_node, value_node in node.value:
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if key is None:
            notes.add(key_node, f"a key of {path or 'the policy'} must be a word, one of {', '.join(known)}")
        elif key in found:
            first = found[key][0].start_mark.line + 1
            notes.add(
                key_node, f"{_joined(path, key)} is there twice, first in line {first}: leave one of them out"
            )
        elif key not in known:
            notes.add(key_node, _unknown(_joined(path, key), key, known))
        else:
            found[key] = (key_node, value_node)
    return found


def read_fields(notes: Notes, node: Node, path: str, known: Mapping[str, Field]) -> dict[str, object]:
    """What each key's field makes of its value; without those that are wrong."""
    values = {}
    for key, (_, value_node) in read_mapping(notes, node, path, known).items():
        if (value := known[key](notes, value_node, _joined(path, key))) is not None:
            values[key] = value
    return values


def read_list(
    notes: Notes,
    node: Node,
    path: str,
    read: Callable[[Notes, Node, str], T | None],
    empty: str = "",
) -> list[T] | None:
    """What `read` makes of each item; `empty` is what is wrong with a list of none, where something is."""
    if not isinstance(node, yaml.SequenceNode):
        example = f": write [{node.value}]" if _is_word(node) else ""
        _wrong_kind(notes, node, path, f"a list{example}")
        return None
    if not node.value and empty:
        notes.add(node, f"{path} is an empty list: {empty}")
        return None
    found = [read(notes, each, f"{path}[{number}]") for number, each in enumerate(node.value)]
    good = [each for each in found if each is not None]
    return good if len(good) == len(found) else None


# Words


def read_text(notes: Notes, node: Node, path: str) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        _wrong_kind(notes, node, path, "a text")
        return None
    if is_told(node):
        return None
    kind = _kind(node)
    if kind == "null":
        notes.add(node, f"{path} is empty: write a value, or leave it out")
        return None
    if kind != "str":
        means = {"bool": "true or false", "timestamp": "a date"}.get(kind, "a number")
        text = shown(node.value)[1:-1]
        notes.add(node, f'{path} must be a text, and YAML reads {text} as {means}: write "{text}"')
        return None
    return str(node.value)


def one_of(notes: Notes, node: Node, path: str, words: Collection[str]) -> str | None:
    text = read_text(notes, node, path)
    if text is None or text in words:
        return text
    notes.add(node, f"{path} {shown(text)} is not known: {_meant(text, words)}")
    return None


def read_truth(notes: Notes, node: Node, path: str) -> bool | None:
    if is_told(node):
        return None
    if (
        isinstance(node, yaml.ScalarNode)
        and _kind(node) == "bool"
        and node.value.lower() in ("true", "false")
    ):
        return bool(node.value.lower() == "true")
    if not isinstance(node, yaml.ScalarNode) or _kind(node) == "null":
        _wrong_kind(notes, node, path, "true or false")
        return None
    instead = "false" if node.value.lower() in ("no", "off", "false", "0", "n") else "true"
    if node.value.lower() in ("true", "false"):
        notes.add(node, f"{path} is a text here: write {instead} without quotes")
    elif node.value.lower() in ("yes", "no", "on", "off", "y", "n", "0", "1"):
        notes.add(
            node, f"{path} {shown(node.value)} is not the same to every reader of YAML: write {instead}"
        )
    else:
        notes.add(node, f"{path} {shown(node.value)} must be true or false")
    return None


# Numbers


def read_number(notes: Notes, node: Node, path: str, least: int, why_least: str = "") -> int | None:
    """A whole number in plain digits; `why_least` says what to write instead of a smaller one."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or _kind(node) == "null":
        _wrong_kind(notes, node, path, "a whole number")
        return None
    text = node.value
    if node.style is not None and _DIGITS.fullmatch(text):
        notes.add(node, f"{path} is a text here: write {text} without quotes")
        return None
    if _kind(node) != "int" or not _DIGITS.fullmatch(text):
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
    if re.fullmatch(DURATION, text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
        if seconds < _MOST_SECONDS:
            return seconds
        notes.add(node, f"{path} {shown(text)} is longer than anybody waits: write at most 106751d")
        return None
    notes.add(node, f"{path} {shown(text)} is no length of time: {_duration_instead(text)}")
    return None


def _duration_instead(text: str) -> str:
    if re.fullmatch(_NUMBER, text):
        return f"it has no unit; write {text}s, {text}m, {text}h or {text}d"
    if text.startswith("-"):
        return "it lies in the past; write how long to wait"
    if match := re.fullmatch(r"([0-9]+):([0-9]{2})(?::([0-9]{2}))?", text):
        hours, minutes, seconds = match.groups()
        return f"write {int(hours)}h{int(minutes)}m{f'{int(seconds)}s' if seconds else ''}"
    if re.fullmatch(DURATION, joined := "".join(text.split())):
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
    if not re.fullmatch(_NUMBER, number):
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
    if not isinstance(node, yaml.ScalarNode) or _kind(node) == "null":
        _wrong_kind(notes, node, path, 'a time: write "22:00"')
        return None
    text = node.value
    is_time = re.fullmatch(CLOCK, text) is not None or (text == "24:00" and path.endswith(".to"))
    if is_time and _kind(node) == "str":
        return time(int(text[:2]) % 24, int(text[3:]))
    if is_time:
        # Minutes of an hour to one reader, a number of base 60 to another.
        notes.add(node, f'{path}: YAML reads {text} as a number: put it in quotes, "{text}"')
    elif re.fullmatch(CLOCK, f"0{text}"):
        notes.add(node, f'{path} {shown(text)} is no time: write "0{text}"')
    else:
        notes.add(node, f'{path} {shown(text)} is no time: write hours and minutes from "00:00" to "23:59"')
    return None


# What is wrong with a value


def _raw(notes: Notes, node: Node, path: str, expected: str) -> str | None:
    """The text as it was written, whatever YAML makes of it."""
    if is_told(node):
        return None
    if not isinstance(node, yaml.ScalarNode) or _kind(node) == "null":
        _wrong_kind(notes, node, path, expected)
        return None
    return str(node.value)


def _wrong_kind(notes: Notes, node: Node, path: str, expected: str) -> None:
    if is_told(node):
        return
    if isinstance(node, yaml.ScalarNode) and _kind(node) == "null":
        is_is = f"{path} is empty" if path else "this is empty"
        notes.add(node, f"{is_is}: write {expected.partition(': write ')[2] or expected}, or leave it out")
        return
    notes.add(node, f"{path or 'the policy'} is {_kind_of_node(node)} and must be {expected}")


def _kind_of_node(node: Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def _kind(node: yaml.ScalarNode) -> str:
    return str(node.tag).removeprefix(_TAG)


def _is_word(node: Node) -> bool:
    if not isinstance(node, yaml.ScalarNode) or _kind(node) != "str":
        return False
    return bool(node.value.isprintable() and len(node.value) <= _MOST_SHOWN)


def _plain(node: yaml.ScalarNode) -> str:
    """The number that was meant, as far as one can tell: 1e3 is 1000, 010 was hardly meant to be 8."""
    text = node.value.replace("_", "")
    try:
        number = float(text) if len(text) < 20 else 5.0
    except ValueError:
        number = float(int(text, 16)) if re.fullmatch("0x[0-9a-fA-F]{1,12}", text) else 5.0
    return str(int(number)) if 0 <= number < 1e15 and number == int(number) else "5"


def _joined(path: str, key: str) -> str:
    word = key if key.isprintable() and 0 < len(key) <= _MOST_SHOWN else shown(key)
    return f"{path}.{word}" if path else word


def _unknown(path: str, key: str, known: Collection[str]) -> str:
    if key == "<<":
        return "<< is not taken here: write out what it stands for"
    return f"{path} is not known: {_meant(key, known)}"


def _meant(word: str, known: Collection[str]) -> str:
    """The nearest word there is, or all of them."""
    folded = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower()[:_MOST_SHOWN], folded, 1)
    return f"write {folded[close[0]]}" if close else f"there is {', '.join(known)}"
