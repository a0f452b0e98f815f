"""Paths to fields, as validation rules and selectable fields of a definition give them: `.spec.a`, `.labels['b']`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podlife.api.structural.props import Props

_PARTS = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}
_NO_FIELD = "does not refer to a valid field"


def find_field(text: str, props: Props, *, with_brackets: bool = True) -> tuple[str, Props]:
    """The path as errors show it, and the schema of the field. Raises ValueError with upstream's reason."""
    parts: Iterator[str] = iter(_PARTS.findall(text))
    path = ""
    for part in parts:
        if part not in (".", "["):
            raise ValueError(f"expected [ or . but got: {part}")
        if part == "[" and not with_brackets:
            raise ValueError("array notation is not allowed")
        name = _next(parts)
        if part == "[":
            name = _unquoted(name)
        path, props = _step(path, name, props)
        if part == "[" and (closing := _next(parts)) != "]":
            raise ValueError(f"expected ] but got {closing}")
    return path, props


def _next(parts: Iterator[str]) -> str:
    part = next(parts, None)
    if part is None:
        raise ValueError("unexpected end of JSON path")
    return part


def _unquoted(part: str) -> str:
    if len(part) < 2 or part[0] != "'" or part[-1] != "'":
        raise ValueError(f"expected single quoted string but got {part}")

    def plain(match: re.Match[str]) -> str:
        if match[0][1] not in _ESCAPES:
            raise ValueError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[0][1]]

    return re.sub(r"\\.", plain, part[1:-1])


def _step(path: str, name: str, props: Props) -> tuple[str, Props]:
    properties, additional = props.get("properties"), props.get("additionalProperties")
    found = properties.get(name) if properties else additional
    if not isinstance(found, dict):
        raise ValueError(_NO_FIELD)
    if not properties:
        return f"{path}[{name}]", found
    return f"{path}.{name}" if path else name, found
