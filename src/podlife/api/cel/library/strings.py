"""Functions of strings: cel-go's standard ones, its extension, and Kubernetes' find and findAll."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.regex import find
from podlife.api.cel.values import Meter

_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
_ASCII_UPPER = {code: code - 32 for code in range(97, 123)}
# What Go's strings.TrimSpace removes.
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def _out_of_range(position: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {position}")


def _char_at(_meter: Meter, text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index_of(_meter: Meter, text: str, wanted: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    if wanted == "":
        return offset
    return text.find(wanted, offset)


def _last_index_of(_meter: Meter, text: str, wanted: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(wanted) if wanted else len(text)
    if offset < 0:
        raise _out_of_range(offset)
    if wanted == "":
        return offset
    return text.rfind(wanted, 0, offset + len(wanted))


def _substring(_meter: Meter, text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def _replace(meter: Meter, text: str, old: str, new: str, count: int = -1) -> str:
    found = len(text) + 1 if old == "" else text.count(old)
    found = min(found, count) if count >= 0 else found
    meter.work((len(text) + found * len(new)) // 8)
    return text.replace(old, new, count)


def _split(meter: Meter, text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    meter.work(len(text) if separator == "" else text.count(separator))
    if count == 1:
        return [text]
    if separator == "":
        pieces = list(text)
        return (
            pieces
            if count < 0 or count >= len(pieces)
            else [*pieces[: count - 1], "".join(pieces[count - 1 :])]
        )
    return text.split(separator, count - 1 if count > 0 else -1)


def _join(meter: Meter, items: Any, separator: str = "") -> str:
    pieces = list(items)
    for piece in pieces:
        if not isinstance(piece, str):
            raise EvaluationError(f"join: invalid input: {piece}")
    meter.work((sum(map(len, pieces)) + len(pieces) * len(separator)) // 8)
    return separator.join(pieces)


def _quote(_meter: Meter, text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


def _matches(meter: Meter, text: str, pattern: str) -> bool:
    return next(find(meter, pattern, text), None) is not None


def _find(meter: Meter, text: str, pattern: str) -> str:
    return next(iter(_find_all(meter, text, pattern, 1)), "")


def _find_all(meter: Meter, text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    end = -1
    try:
        matches = find(meter, pattern, text)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None
    for match in matches:
        if 0 <= limit <= len(found):
            break
        meter.work(1)
        # Go finds nothing empty right behind a match.
        if match[0] or match.start() != end:
            found.append(match[0])
        end = match.end()
    return found


STRINGS: dict[str, Callable[..., Any]] = {
    "startsWith": lambda _meter, text, prefix: text.startswith(prefix),
    "endsWith": lambda _meter, text, suffix: text.endswith(suffix),
    "contains": lambda _meter, text, part: part in text,
    "matches": _matches,
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": lambda _meter, text: text.translate(_ASCII_LOWER),
    "upperAscii": lambda _meter, text: text.translate(_ASCII_UPPER),
    "substring": _substring,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "trim": lambda _meter, text: text.strip(_SPACES),
    "strings.quote": _quote,
    "find": _find,
    "findAll": _find_all,
    "jsonpatch.escapeKey": lambda _meter, text: text.replace("~", "~0").replace("/", "~1"),
}
