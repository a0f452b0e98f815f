"""All functions by name; each takes the meter and its arguments, a member's target first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.library.authorization import AUTHORIZATION
from podlife.api.cel.library.formats import FORMATS
from podlife.api.cel.library.kubernetes_values import KUBERNETES
from podlife.api.cel.library.lists import LIST_FUNCTIONS
from podlife.api.cel.library.networks import NETWORKS
from podlife.api.cel.library.string_format import format_string
from podlife.api.cel.library.strings import STRINGS
from podlife.api.cel.operators import OPERATORS
from podlife.api.cel.times import duration_field, timestamp_field
from podlife.api.cel.values import LISTS, MAPS, NONE, Duration, Meter, Optional, find, keys, to_key

_TIME_FIELDS = (
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)


def _time_field(name: str) -> Callable[..., Any]:
    def function(_meter: Meter, value: Any, zone: str | None = None) -> int:
        if isinstance(value, Duration):
            return duration_field(name, value)
        return timestamp_field(name, value, zone)

    return function


def _value(_meter: Meter, optional: Optional) -> Any:
    if not optional.has_value:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _of_non_zero(_meter: Meter, value: Any) -> Optional:
    is_zero = value is None or value is False or (isinstance(value, (int, float)) and value == 0)
    if isinstance(value, (str, bytes, *LISTS, *MAPS)):
        is_zero = len(value) == 0
    return NONE if is_zero else Optional(True, value)


def _unwrap(_meter: Meter, optionals: Any) -> list[Any]:
    return [optional.value for optional in optionals if optional.has_value]


def _map_insert(_meter: Meter, target: dict[Any, Any], *inserted: Any) -> dict[Any, Any]:
    """The target is the accumulator of a comprehension, which may change in place."""
    entries = (
        [inserted] if len(inserted) == 2 else [(key, find(inserted[0], key)[1]) for key in keys(inserted[0])]
    )
    for key, value in entries:
        known = to_key(key)
        if known in target:
            raise EvaluationError(f"insert failed: key {key} already exists")
        target[known] = value
    return target


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **OPERATORS,
    **STRINGS,
    **LIST_FUNCTIONS,
    **NETWORKS,
    **KUBERNETES,
    **FORMATS,
    **AUTHORIZATION,
    **{name: _time_field(name) for name in _TIME_FIELDS},
    "format": format_string,
    "hasValue": lambda _meter, optional: optional.has_value,
    "value": _value,
    "optional.of": lambda _meter, value: Optional(True, value),
    "optional.none": lambda _meter: NONE,
    "optional.ofNonZeroValue": _of_non_zero,
    "optional.unwrap": _unwrap,
    "unwrapOpt": _unwrap,
    "cel.@mapInsert": _map_insert,
}
# Functions of two libraries: the value decides.
FUNCTIONS["string"] = lambda meter, value: (
    str(value) if hasattr(value, "type_name") else OPERATORS["string"](meter, value)
)
for _name in ("indexOf", "lastIndexOf"):
    FUNCTIONS[_name] = lambda meter, target, *rest, _name=_name: (
        STRINGS[_name](meter, target, *rest)
        if isinstance(target, str)
        else LIST_FUNCTIONS[_name](meter, target, *rest)
    )
