"""`'%s has %d'.format([name, count])`, with cel-go's numbers: `%f` groups thousands, `%e` prints a power of ten."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.operators import to_string
from podlife.api.cel.types import CelType
from podlife.api.cel.values import (
    LISTS,
    MAPS,
    Duration,
    Meter,
    Timestamp,
    find,
    keys,
    type_name,
)

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MOST_DIGITS = 1000
COMPLAINTS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


class ClauseError(Exception):
    """`index` is the argument that the clause does not take; -1 is the format itself."""

    def __init__(self, message: str, index: int = -1) -> None:
        super().__init__(message)
        self.index = index


def interpret(text: str, count: int, clause: Callable[[int, str, int | None], str]) -> tuple[str, int]:
    """The text with `clause(index, letter, precision)` for each clause, and their number. Raises ClauseError."""
    pieces: list[str] = []
    used = position = 0
    while (start := text.find("%", position)) >= 0:
        pieces.append(text[position:start])
        position = start + 1
        if text[position : position + 1] == "%":
            pieces.append("%")
            position += 1
            continue
        if position >= len(text):
            raise ClauseError("unexpected end of string")
        if used >= count:
            raise ClauseError(f"index {used} out of range")
        position, precision = _precision(text, position)
        letter = text[position]
        if letter not in COMPLAINTS:
            raise ClauseError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
        pieces.append(clause(used, letter, precision))
        position += 1
        used += 1
    return "".join([*pieces, text[position:]]), used


def _precision(text: str, position: int) -> tuple[int, int | None]:
    if text[position] != ".":
        return position, None
    end = position + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    prefix = "could not parse formatting clause: error while parsing precision"
    if end >= len(text):
        raise ClauseError(f"{prefix}: could not find end of precision specifier")
    digits = text[position + 1 : end]
    if not digits or len(digits) > 9:
        quoted = json.dumps(digits)
        reason = "invalid syntax" if not digits else "value out of range"
        raise ClauseError(
            f"{prefix}: error while converting precision to integer: strconv.Atoi: parsing {quoted}: {reason}"
        )
    return end, int(digits)


def format_string(meter: Meter, text: str, args: Any) -> str:
    def clause(index: int, letter: str, precision: int | None) -> str:
        value = args[index]
        shown = _clause(meter, letter, precision, value)
        if shown is None:
            raise ClauseError(
                f"error during formatting: {COMPLAINTS[letter]}, was given {type_name(value)}", index
            )
        meter.work(len(shown) // 8)
        return shown

    try:
        return interpret(text, len(args), clause)[0]
    except ClauseError as error:
        raise EvaluationError(str(error)) from None


def _clause(meter: Meter, letter: str, precision: int | None, value: Any) -> str | None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if letter == "s":
        return _text(meter, value)
    if letter in ("f", "e"):
        if value in ("NaN", "Infinity", "-Infinity"):
            value = float(value)
        return _number(letter, precision, value) if isinstance(value, float) else None
    if letter in ("x", "X") and isinstance(value, (str, bytes)):
        raw = (value.encode() if isinstance(value, str) else value).hex()
        return raw.upper() if letter == "X" else raw
    if letter == "b" and isinstance(value, bool):
        return "1" if value else "0"
    return format(int(value), letter) if is_integer else None


def _number(letter: str, precision: int | None, value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    digits = 6 if precision is None else min(precision, _MOST_DIGITS)
    if letter == "f":
        return f"{value:,.{digits}f}"
    mantissa, exponent = f"{value:.6e}".split("e")
    return f"{mantissa}\u00d710{exponent.lstrip('+').translate(_SUPERSCRIPT)}"


def _text(meter: Meter, value: Any) -> str | None:
    """As `%s` prints it at the top."""
    if isinstance(value, LISTS):
        return "[" + ", ".join(_inner(meter, item) for item in value) + "]"
    if isinstance(value, MAPS):
        return _map_text(meter, value)
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float, str, bytes, Timestamp, Duration, CelType)):
        return to_string(value)
    return None


def _map_text(meter: Meter, value: Any) -> str:
    pairs: list[tuple[str, str]] = []
    for key in keys(value):
        if isinstance(key, float):
            raise ClauseError("error during formatting: no formatting function for map key of type double")
        pairs.append((_inner(meter, key), _inner(meter, find(value, key)[1])))
    return "{" + ", ".join(f"{key}:{item}" for key, item in sorted(pairs)) + "}"


def _inner(meter: Meter, value: Any) -> str:
    """As a part of a list or map, where it reads like CEL."""
    meter.work(1)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return "b" + json.dumps(to_string(value), ensure_ascii=False)
    if isinstance(value, float):
        shown = "NaN" if math.isnan(value) else f"{value:.6f}"
        return shown if math.isfinite(value) else f'"{shown}"'
    if isinstance(value, Timestamp):
        return f'timestamp("{to_string(value)}")'
    if isinstance(value, Duration):
        return f'duration("{to_string(value)}")'
    shown_text = _text(meter, value)
    if shown_text is None:
        raise ClauseError(f"error during formatting: no formatting function for {type_name(value)}")
    return shown_text
