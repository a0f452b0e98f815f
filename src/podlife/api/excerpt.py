"""The beginning of a text or of a JSON value, for messages.

A message may quote client input of several megabytes: the excerpt and the work of producing it are bounded, however
large or deep the value is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_CUT = "..."
# Only free-form values can be deeper.
_DEEPEST = 64
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def excerpt(text: str, most: int) -> str:
    """The text, cut after `most` characters."""
    return text if len(text) <= most else text[:most] + _CUT


def excerpt_json(value: Any, most: int) -> str:
    """The value as compact JSON, cut after about `most` characters. The rest is not encoded."""
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
