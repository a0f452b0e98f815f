"""Integers in text, as Go's `strconv.ParseInt` reads them: a sign, ASCII digits, 64 bits.

Python's `int` also takes spaces, underscores and the digits of every script, and refuses thousands of digits.
"""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MOST_DIGITS = 19


def parse_int64(text: str) -> int:
    """Raises ValueError, in Go's words."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits) if len(digits) <= _MOST_DIGITS else 2**64
    number = -number if text[0] == "-" else number
    if not -(2**63) <= number < 2**63:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number
