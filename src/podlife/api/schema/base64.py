"""Base64 as Go's standard decoder takes it: line ends are skipped, padding is needed, stray bits do not matter."""

from __future__ import annotations

import string

_ALPHABET = frozenset(string.ascii_letters + string.digits + "+/")


def check_base64(text: str) -> int | None:
    """Where (in bytes) the text stops being base64 for Go, or None when it is fine."""
    data = text.encode().decode("latin-1")
    in_group = 0
    for at, letter in enumerate(data):
        if letter in "\r\n":
            continue
        if letter == "=":
            return _check_padding(data, at, in_group)
        if letter not in _ALPHABET:
            return at
        in_group = (in_group + 1) % 4
    return len(data) - in_group if in_group else None


def _check_padding(data: str, at: int, in_group: int) -> int | None:
    if in_group < 2:
        return at
    rest = [(place, letter) for place, letter in enumerate(data[at + 1 :], at + 1) if letter not in "\r\n"]
    if in_group == 2:
        if not rest:
            return len(data)
        if rest[0][1] != "=":
            return rest[0][0] - 1
        del rest[0]
    return rest[0][0] if rest else None
