"""JSONPath as client-go's template package reads it, for printer columns and selectable fields.

Understood are fields, indices, slices, wildcards, recursive descent and filters: what column definitions use. A path is
compiled once; finding values in an object takes time in proportion to the object, times the number of its steps.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Find = Callable[[Any], list[Any]]
_Step = Callable[[Iterable[Any]], Iterator[Any]]

_MOST_STEPS = 64
_MOST_FOUND = 10_000
_FIELD = re.compile(r"\.?(?:\\.|[^.\[\]{}()'\"?@*\s\\])+")
_BRACKET = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(-?[0-9]+)|(-?[0-9]*):(-?[0-9]*)(?::([0-9]+))?|(\*))\]")
_FILTER = re.compile(r"\[\?\(\s*@((?:[^=!<>()]|\\.)*?)\s*(?:(==|!=|<=|>=|<|>)\s*([^()]+?))?\s*\)\]")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_path(text: str) -> Find:
    """A function that finds the values at a path; raises ValueError for a path that is not understood."""
    steps = list(_steps(text))
    if len(steps) > _MOST_STEPS:
        raise ValueError(f"a path has at most {_MOST_STEPS} steps")

    def find(value: Any) -> list[Any]:
        found: list[Any] = [value]
        for step in steps:
            found = [each for each, _ in zip(step(found), range(_MOST_FOUND), strict=False)]
        return found

    return find


def _steps(text: str) -> Iterator[_Step]:
    at = 0
    while at < len(text):
        rest = text[at:]
        if rest.startswith(".."):
            yield _descend
            at += 1 if len(rest) > 2 and rest[2] not in "[." else 2
        elif rest.startswith((".*", "*")):
            yield _all
            at += 2 if rest[0] == "." else 1
        elif rest == ".":
            at += 1
        elif match := _FILTER.match(text, at):
            yield _filtered(*match.groups())
            at = match.end()
        elif match := _BRACKET.match(text, at):
            yield _bracket(match)
            at = match.end()
        elif match := _FIELD.match(text, at):
            yield _field(match[0].removeprefix(".").replace("\\", ""))
            at = match.end()
        else:
            raise ValueError(f"unrecognized character in path: {rest[:20]!r}")


def _field(name: str) -> _Step:
    def step(values: Iterable[Any]) -> Iterator[Any]:
        return (value[name] for value in values if isinstance(value, dict) and name in value)

    return step


def _bracket(match: re.Match[str]) -> _Step:
    single, double, index, start, stop, stride, _ = match.groups()
    if (name := single if single is not None else double) is not None:
        return _field(name)
    if index is not None:
        position = int(index)
        return lambda values: (
            value[position]
            for value in values
            if isinstance(value, list) and -len(value) <= position < len(value)
        )
    if start is None:
        return _all
    part = slice(*(int(each) if each else None for each in (start, stop, stride)))
    return lambda values: (item for value in values if isinstance(value, list) for item in value[part])


def _all(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value


def _descend(values: Iterable[Any]) -> Iterator[Any]:
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, dict | list):
            waiting += list(value.values() if isinstance(value, dict) else value)[::-1]


def _filtered(left: str, sign: str | None, right: str | None) -> _Step:
    find = compile_path(left)
    wanted = _literal(right) if right is not None else None

    def passes(item: Any) -> bool:
        found = find(item)
        if sign is None:
            return bool(found)
        return len(found) == 1 and _compare(sign, found[0], wanted)

    return lambda values: (
        item for value in values if isinstance(value, list) for item in value if passes(item)
    )


def _compare(sign: str, found: Any, wanted: Any) -> bool:
    try:
        return bool(_COMPARE[sign](found, wanted))
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if re.fullmatch(r"-?[0-9]+", text) else float(text)
    except ValueError:
        raise ValueError(f"unrecognized value in a filter: {text!r}") from None
