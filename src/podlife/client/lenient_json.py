"""Decodes JSON that kube-apiserver sends and that strict decoders reject. Pure.

Where the API allows arbitrary JSON (ControllerRevisions), a server passes on what users wrote: unpaired surrogates,
invalid UTF-8, ten thousand levels of nesting. One such object must not make a whole list unreadable. Invalid
characters become U+FFFD, as in Go. A value that is nested too deeply becomes a number that no type can hold: a view
that needs the value is refused, all others decode.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

_MOST_LEVELS = 200
_TOKEN = re.compile(rb'"(?:[^"\\]+|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_UNREADABLE = b"1e999"
# Any escape, so that a backslash that is escaped itself begins none; a half that has no other half is the group.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_NO_LETTER = b"\\ufffd"


def decode_lenient(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Decode what the strict decoder rejected. Raises as a decoder if it is still invalid."""
    data = with_letters(data)
    try:
        return decoder.decode(data)
    except RecursionError:
        return decoder.decode(shallow(data))


def with_letters(data: bytes) -> bytes:
    """The same JSON with invalid characters replaced."""
    data = data.decode(errors="replace").encode()
    return _ESCAPE.sub(lambda escape: _NO_LETTER if escape[1] else escape[0], data)


def shallow(data: bytes, most_levels: int = _MOST_LEVELS) -> bytes:
    """The same JSON without values that are nested too deeply. Invalid JSON stays invalid."""
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
