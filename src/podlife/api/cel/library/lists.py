"""Functions of lists: Kubernetes' (sum, min, isSorted), cel-go's (sort, slice, flatten), and sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.operators import add, contains
from podlife.api.cel.values import LISTS, NONE, Meter, Optional, compare, equal


def _is_sorted(meter: Meter, items: Any) -> bool:
    meter.work(len(items))
    before: Any = None
    for position, item in enumerate(items):
        if position and compare(before, item) > 0:
            return False
        before = item
    return True


def _sum(meter: Meter, items: Any) -> Any:
    meter.work(len(items))
    total: Any = 0
    for position, item in enumerate(items):
        total = add(meter, total, item) if position else item
    return total


def _extreme(name: str, sign: int) -> Callable[..., Any]:
    def function(meter: Meter, items: Any) -> Any:
        meter.work(len(items))
        if not len(items):
            raise EvaluationError(f"{name} called on empty list")
        best = items[0]
        for item in items:
            if compare(item, best) * sign > 0:
                best = item
        return best

    return function


def _index_of(meter: Meter, items: Any, wanted: Any) -> int:
    return next((position for position, item in enumerate(items) if equal(meter, item, wanted)), -1)


def _last_index_of(meter: Meter, items: Any, wanted: Any) -> int:
    meter.work(len(items))
    for position in range(len(items) - 1, -1, -1):
        if equal(meter, items[position], wanted):
            return position
    return -1


def _slice(meter: Meter, items: Any, start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        text = "start index must be less than or equal to end index"
        raise EvaluationError(f"cannot slice({start}, {end}), {text}")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    meter.work(len(items))
    return list(items)[start:end]


def _flatten(meter: Meter, items: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = list(items)
    # Each round opens one level, so that deep lists need no recursion.
    for _ in range(depth):
        meter.work(len(flat) + 1)
        if not any(isinstance(item, LISTS) for item in flat):
            break
        opened: list[Any] = []
        for item in flat:
            if isinstance(item, LISTS):
                meter.work(len(item))
                opened.extend(item)
            else:
                opened.append(item)
        flat = opened
    return flat


def _range(meter: Meter, count: int) -> list[int]:
    meter.work(max(count, 0))
    return list(range(count))


def _distinct(meter: Meter, items: Any) -> list[Any]:
    unique: list[Any] = []
    for item in items:
        if not any(equal(meter, item, known) for known in unique):
            unique.append(item)
    return unique


def _sort_by(meter: Meter, items: Any, by: Any) -> list[Any]:
    if len(items) != len(by):
        text = "expected a list of the same size as the associated keys list"
        raise EvaluationError(
            f"@sortByAssociatedKeys() {text}, but got {len(items)} and {len(by)} elements respectively"
        )
    meter.work(20 * len(items))
    order = cmp_to_key(compare)
    pairs = sorted(zip(map(order, by), items, strict=True), key=lambda pair: pair[0])
    return [item for _, item in pairs]


def _reverse(meter: Meter, items: Any) -> list[Any]:
    meter.work(len(items))
    return list(items)[::-1]


def _contains_all(meter: Meter, items: Iterable[Any], wanted: Iterable[Any]) -> bool:
    return all(contains(meter, item, items) for item in wanted)


LIST_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "isSorted": _is_sorted,
    "sum": _sum,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "slice": _slice,
    "flatten": _flatten,
    "lists.range": _range,
    "distinct": _distinct,
    "sort": lambda meter, items: _sort_by(meter, items, items),
    "@sortByAssociatedKeys": _sort_by,
    "reverse": _reverse,
    "first": lambda _meter, items: Optional(True, items[0]) if len(items) else NONE,
    "last": lambda _meter, items: Optional(True, items[len(items) - 1]) if len(items) else NONE,
    "sets.contains": _contains_all,
    "sets.intersects": lambda meter, one, other: any(contains(meter, item, other) for item in one),
    "sets.equivalent": lambda meter, one, other: (
        _contains_all(meter, one, other) and _contains_all(meter, other, one)
    ),
}
