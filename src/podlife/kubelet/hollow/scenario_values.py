"""Parses the values of a scenario, and phrases the errors in them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from podlife.api.durations import NUMBER, parse_duration_with_days
from podlife.api.yaml_fields import Diagnostics, Read, YamlNode, known_entries

T = TypeVar("T")

_MAX_SECONDS = 10 * 365 * 86_400.0


def read_fields(
    notes: Diagnostics, node: YamlNode, path: str, known: Mapping[str, Read], required: Collection[str] = ()
) -> dict[str, Any]:
    """The values of a mapping by key, without the invalid ones."""

    def phrase(key_node: YamlNode, key: str, first_line: int) -> str:
        where = f"{path}.{key}" if path else key
        if first_line:
            return f"duplicate field {where}"
        close = difflib.get_close_matches(key, known, 1)
        meant = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
        return f"unknown field {where}: {meant}"

    if node.id != "mapping":
        notes.add(node, f"{path or 'this'} must be a mapping with {', '.join(known)}")
        return {}
    values = {
        key: known[key](notes, value_node, f"{path}.{key}" if path else key)
        for key, _, value_node in known_entries(notes, node, known, phrase)
    }
    for key in required:
        if key not in values:
            notes.add(node, f"{path or 'this'} needs {key}")
    return {key: value for key, value in values.items() if value is not None}


def read_items(
    notes: Diagnostics, node: YamlNode, path: str, read: Callable[[YamlNode, str], T | None]
) -> list[T]:
    """Call `read` for each item of a list."""
    if node.id != "sequence":
        notes.add(node, f"{path} must be a list")
        return []
    values = [read(each, f"{path}[{number}]") for number, each in enumerate(node.value)]
    return [each for each in values if each is not None]


def scalar(
    read: Callable[[str], T | None], expected: str
) -> Callable[[Diagnostics, YamlNode, str], T | None]:
    """A `Read` of one value; `read` returns None if it is not `expected`."""

    def checked(notes: Diagnostics, node: YamlNode, path: str) -> T | None:
        value = read(node.value) if node.id == "scalar" else None
        if value is None:
            notes.add(node, f"{path} must be {expected}")
        return value

    return checked


def whole_number(minimum: int, maximum: int | None = None) -> Read:
    def read(text: str) -> int | None:
        digits = text.removeprefix("-")
        # Longer numbers exceed every limit and are slow to parse.
        if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
            return None
        return int(text) if minimum <= int(text) and (maximum is None or int(text) <= maximum) else None

    bounds = f"of {minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
    return scalar(read, f"a whole number {bounds}")


def _share(text: str) -> float | None:
    digits = text.strip().removesuffix("%")
    if not re.fullmatch(NUMBER, digits):
        return None
    number = float(digits) / (100 if digits != text.strip() else 1)
    return number if number <= 1.0 else None


def _seconds(text: str) -> float | None:
    is_number = re.fullmatch(NUMBER, text.strip()) is not None
    seconds = float(text) if is_number else parse_duration_with_days(text.strip())
    return seconds if seconds is not None and seconds <= _MAX_SECONDS else None


read_text = scalar(str, "a string")
read_truth = scalar(lambda text: {"true": True, "false": False}.get(text.lower()), "true or false")
read_share = scalar(_share, "a share such as 0.25 or 25%")
read_seconds = scalar(_seconds, "a duration such as 40s, 1m30s or 500ms")


def read_texts(notes: Diagnostics, node: YamlNode, path: str) -> tuple[str, ...]:
    """A list, or a single string."""
    if node.id == "scalar":
        return (str(node.value),)
    return tuple(read_items(notes, node, path, partial(read_text, notes)))
