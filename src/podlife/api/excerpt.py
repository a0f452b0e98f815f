"""The beginning of a text or of a JSON value, for messages.

A message quotes what a client sent, and a client may send megabytes: what is quoted is bounded, and so is the
work of quoting it, however large or deep the value is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_CUT = "..."
# No type of Kubernetes is as deep; free-form values can be.
_DEEPEST = 64
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def excerpt(text: str, most: int) -> str:
    """The text, cut after `most` characters."""
    return text if len(text) <= most else text[:most] + _CUT


def excerpt_json(value: Any, most: int) -> str:
    """The value as compact JSON, cut after about `most` characters. What lies behind the cut is never encoded."""
    pieces: list[str] = []
    size = 0
    for piece in _pieces(value, most, 0):
        pieces.append(piece)
        size += len(piece)
        if size > most and len(pieces) > 1:
            return excerpt("".join(pieces), most)
    return "".join(pieces)


def _pieces(value: Any, most: int, depth: int) -> Iterator[str]:
    if isinstance(value, dict | list | tuple) and depth == _DEEPEST:
        yield _CUT
    elif isinstance(value, dict):
        for index, (key, item) in enumerate(value.items()):
            yield f"{',' if index else '{'}{_encode(excerpt(key, most))}:"
            yield from _pieces(item, most, depth + 1)
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield "," if index else "["
            yield from _pieces(item, most, depth + 1)
        yield "]" if value else "[]"
    else:
        yield _encode(excerpt(value, most) if isinstance(value, str) else value)
