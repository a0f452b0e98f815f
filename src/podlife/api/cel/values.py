"""Values while an expression runs, what they are equal to, and the budget of one evaluation.

JSON values stand for themselves. A uint is a `Uint`, times are `Timestamp` and `Duration` in nanoseconds, values of
a schema are views that read the JSON below them when asked. Maps are dictionaries; a bool as key is wrapped, since
Python takes `True` for `1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podlife.api.cel import types
from podlife.api.cel.errors import CostLimitExceededError, EvaluationError
from podlife.api.cel.types import CelType

# Steps that upstream does not charge (copying lists, comparing what is inside of them): as many as the cost limit, but
# enough for a large object where that is small, and not so many that they take long where it is large.
_LEAST_UNCOUNTED = 100_000
_MOST_UNCOUNTED = 1_000_000


class Meter:
    """The cost so far. `charge` follows upstream's cost; `work` bounds the time of what that leaves out."""

    __slots__ = ("_uncounted", "cost", "limit")

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self.limit = limit
        self._uncounted = min(max(limit, _LEAST_UNCOUNTED), _MOST_UNCOUNTED)

    def charge(self, amount: int) -> None:
        self.cost += amount
        if self.cost > self.limit:
            raise CostLimitExceededError

    def work(self, steps: int) -> None:
        self._uncounted -= steps
        if self._uncounted < 0:
            raise CostLimitExceededError


class Uint(int):
    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """`offset_seconds` is the time zone that it was written in, which only its text shows."""

    nanos: int
    offset_seconds: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    nanos: int


class Optional(NamedTuple):
    has_value: bool
    value: Any = None


NONE = Optional(False)


class BoolKey(NamedTuple):
    """A bool as the key of a map."""

    value: bool


def to_key(value: Any) -> Any:
    if type(value) is bool:
        return BoolKey(value)
    if not isinstance(value, (str, int, float)):
        raise EvaluationError(f"unsupported key type: {type_name(value)}")
    return value


def from_key(key: Any) -> Any:
    return key.value if type(key) is BoolKey else key


class ListView:
    """A JSON list with a schema. `list_type` set and map change what equality and `+` mean."""

    __slots__ = ("_convert", "items", "type")

    def __init__(self, items: list[Any], of: CelType, convert: Any) -> None:
        self.items, self.type, self._convert = items, of, convert

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        element = self.type.parameters[0]
        return (self._convert(item, element) for item in self.items)

    def __getitem__(self, index: int) -> Any:
        return self._convert(self.items[index], self.type.parameters[0])

    def key(self, item: Any) -> Any:
        """What identifies an item of a list of type map."""
        item = plain(item)
        if not isinstance(item, dict):
            return None
        return tuple(map(_hashable, (item.get(name) for name in self.type.list_keys)))

    def plus(self, other: Any) -> ListView:
        added = [plain(item) for item in other]
        if self.type.list_type == "set":
            seen = {_hashable(item) for item in self.items}
            fresh = {_hashable(item): item for item in added}
            result = [*self.items, *(item for key, item in fresh.items() if key not in seen)]
        elif self.type.list_type == "map":
            positions = {self.key(item): index for index, item in enumerate(self.items)}
            result = list(self.items)
            for item in added:
                position = positions.get(self.key(item))
                if position is None:
                    result.append(item)
                else:
                    result[position] = item
        else:
            result = [*self.items, *added]
        return ListView(result, self.type, self._convert)


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, (list, dict)) else (type(value), value)


class MapView:
    """A JSON object with a schema: fields by their escaped names, or entries of additionalProperties."""

    __slots__ = ("_convert", "entries", "type")

    def __init__(self, entries: dict[str, Any], of: CelType, convert: Any) -> None:
        self.entries, self.type, self._convert = entries, of, convert

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        if self.type.kind == "map":
            return iter(self.entries)
        names = self.type.property_names
        return (name for name in names if names[name] in self.entries)

    def find(self, key: str) -> tuple[bool, Any]:
        if self.type.kind == "map":
            if key not in self.entries:
                return False, None
            return True, self._convert(self.entries[key], self.type.parameters[1])
        name = self.type.property_names.get(key)
        # A null of a nullable field counts as absent.
        if name is None or self.entries.get(name) is None:
            return False, None
        return True, self._convert(self.entries[name], self.type.fields[key])


class Struct(dict[str, Any]):
    """A value that an expression constructed by the name of its type."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.type_name = type_name


class Accumulator(list[Any]):
    """The list that a comprehension builds. No expression can name it, so that it may change in place."""

    __slots__ = ()


LISTS = (list, ListView)
MAPS = (dict, MapView)


def find(container: Any, key: Any) -> tuple[bool, Any]:
    """The value of a key of a map."""
    if isinstance(container, MapView):
        if not isinstance(key, str):
            raise EvaluationError("no such overload")
        return container.find(key)
    key = to_key(key)
    if key in container:
        return True, container[key]
    return False, None


def keys(container: Any) -> Iterator[Any]:
    return iter(container) if isinstance(container, MapView) else map(from_key, container)


def size(value: Any) -> int:
    """What upstream's cost takes as the size: 1 for everything that has none."""
    if isinstance(value, (str, bytes, *LISTS, *MAPS)):
        return len(value)
    return value.cel_size if hasattr(value, "cel_size") else 1


_NAMES = {
    bool: "bool", int: "int", Uint: "uint", float: "double", str: "string", bytes: "bytes", type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp", Duration: "google.protobuf.Duration", Optional: "optional_type",
    list: "list", Accumulator: "list", ListView: "list", dict: "map", MapView: "map", CelType: "type",
}  # fmt: skip


def type_name(value: Any) -> str:
    return _NAMES.get(type(value)) or str(value.type_name)


_LITERALS = {
    bool: types.BOOL, int: types.INT, Uint: types.UINT, float: types.DOUBLE, str: types.STRING, bytes: types.BYTES,
    CelType: types.TYPE,
}  # fmt: skip


def literal_type(value: Any) -> CelType:
    return _LITERALS.get(type(value), types.NULL)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and type(value) is not bool


def equal(meter: Meter, one: Any, other: Any) -> bool:
    """Numbers are equal across types. Other values of different types are not; with a schema, that is an error."""
    meter.work(1)
    if is_number(one):
        return is_number(other) and one == other
    if isinstance(one, (ListView, MapView)) and type_name(one) != type_name(other):
        raise EvaluationError("no such overload")
    if isinstance(one, LISTS):
        return isinstance(other, LISTS) and _equal_lists(meter, one, other)
    if isinstance(one, MAPS):
        return isinstance(other, MAPS) and _equal_maps(meter, one, other)
    if isinstance(one, CelType):
        return isinstance(other, CelType) and one.name == other.name
    if isinstance(one, Optional):
        if not isinstance(other, Optional) or one.has_value != other.has_value:
            return False
        return not one.has_value or equal(meter, one.value, other.value)
    return type(one) is type(other) and bool(one == other)


def _equal_lists(meter: Meter, one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    kind = one.type.list_type if isinstance(one, ListView) else ""
    if kind == "set":
        meter.work(len(one))
        known = {_hashable(item) for item in one.items}
        return all(_hashable(plain(item)) in known for item in other)
    if kind == "map":
        meter.work(len(one))
        positions = {one.key(item): index for index, item in enumerate(one.items)}
        for item in other:
            position = positions.get(one.key(item))
            if position is None or not equal(meter, one[position], item):
                return False
        return True
    return all(equal(meter, mine, theirs) for mine, theirs in zip(one, other, strict=True))


def _equal_maps(meter: Meter, one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    for key in keys(one):
        has_mine, mine = find(one, key)
        has_other, theirs = find(other, key)
        if has_mine != has_other or (has_mine and not equal(meter, mine, theirs)):
            return False
    if isinstance(one, MapView) and isinstance(other, MapView) and one.type.kind != "map":
        known = set(one.type.property_names.values())
        return all(
            other.entries.get(name, value) == value
            for name, value in one.entries.items()
            if name not in known
        )
    return True


_ORDERED = (str, bytes, bool, Timestamp, Duration)


def compare(one: Any, other: Any) -> int:
    """-1, 0 or 1. Raises EvaluationError for what has no order."""
    if is_number(one) and is_number(other):
        if math.isnan(one) or math.isnan(other):
            raise EvaluationError("NaN values cannot be ordered")
    elif type(one) is not type(other) or not isinstance(one, _ORDERED):
        raise EvaluationError("no such overload")
    return int(one > other) - int(one < other)


def plain(value: Any) -> Any:
    """The JSON below a view; other values stay."""
    if isinstance(value, ListView):
        return value.items
    return value.entries if isinstance(value, MapView) else value


def to_json(meter: Meter, value: Any) -> Any:
    """A result without views, with maps by plain keys."""
    meter.work(1)
    if isinstance(value, LISTS):
        return [to_json(meter, item) for item in value]
    if isinstance(value, MAPS):
        found = {key: to_json(meter, find(value, key)[1]) for key in keys(value)}
        return Struct(value.type_name, found) if isinstance(value, Struct) else found
    if isinstance(value, Optional) and value.has_value:
        return Optional(True, to_json(meter, value.value))
    return value
