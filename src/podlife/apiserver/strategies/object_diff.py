"""Difference of two objects in a few lines, shown if an update changes immutable fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podlife.api.excerpt import excerpt_json

_MOST_LINES = 20
_LONGEST_VALUE = 300


def describe_difference(old: Any, new: Any, path: str = "") -> str:
    """One line per changed value, `path: old -> new`, cut after a screenful."""
    lines: list[str] = []
    for line in _walk(old, new, path):
        if len(lines) == _MOST_LINES:
            lines.append("...")
            break
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def _walk(old: Any, new: Any, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _walk(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _walk(before, after, f"{path}[{index}]")
    else:
        yield f"{path}: {excerpt_json(old, _LONGEST_VALUE)} -> {excerpt_json(new, _LONGEST_VALUE)}"
