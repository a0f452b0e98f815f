"""JSON that is nested too deeply to be read, cut to a depth at which it can be. Pure.

A server takes ten thousand levels where any JSON may stand, far more than can be decoded here, and even to pass over
them takes as many. What is left out is replaced by a number that nobody can hold: who looks at it is refused, as
before, and who does not look at it reads the rest.
"""

from __future__ import annotations

import re

__all__ = ["shallow"]

_MOST_LEVELS = 200
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_UNREADABLE = b"1e999"


def shallow(data: bytes, most_levels: int = _MOST_LEVELS) -> bytes:
    """The same JSON without what is nested more deeply. What is no JSON is none afterwards either."""
    kept: list[bytes] = []
    level = start = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            level += 1
            if level == most_levels + 1:
                kept += (data[start : token.start()], _UNREADABLE)
                start = len(data)
        elif first in b"]}":
            if level == most_levels + 1:
                start = token.end()
            level -= 1
    kept.append(data[start:])
    return b"".join(kept)
