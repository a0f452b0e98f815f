"""Operators and conversions: arithmetic with the limits of 64 bits, indexes, order, conversions between types."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from podlife.api.cel.declarations import functions
from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.numbers_text import double_text
from podlife.api.cel.times import (
    NANOS,
    bounded_duration,
    bounded_timestamp,
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from podlife.api.cel.types import CelType, parse_type
from podlife.api.cel.values import (
    LISTS,
    MAPS,
    Accumulator,
    Duration,
    ListView,
    Meter,
    Timestamp,
    Uint,
    compare,
    equal,
    find,
    is_number,
    type_name,
)

_INT = (-(2**63), 2**63 - 1)
_UINT = (0, 2**64 - 1)
Function = Callable[..., Any]


def no_overload() -> EvaluationError:
    return EvaluationError("no such overload")


def index(container: Any, key: Any) -> Any:
    """`container[key]` or `container.key`; raises EvaluationError."""
    is_found, value = find_index(container, key)
    if is_found:
        return value
    if isinstance(container, LISTS):
        raise EvaluationError(f"index out of bounds: {_shown(key)}")
    raise EvaluationError(f"no such key: {_shown(key)}")


def _shown(key: Any) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return double_text(key) if isinstance(key, float) else str(key)


def find_index(container: Any, key: Any) -> tuple[bool, Any]:
    if isinstance(container, LISTS):
        if not is_number(key):
            raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
        if isinstance(key, float) and not key.is_integer():
            raise EvaluationError(f"unsupported index value {double_text(key)} in list")
        position = int(key)
        return (True, container[position]) if 0 <= position < len(container) else (False, None)
    if not isinstance(container, MAPS) or isinstance(key, (list, dict)):
        return False, None
    if isinstance(container, dict):
        return find(container, key)
    return find(container, key) if isinstance(key, str) else (False, None)


_GO_TYPES = {
    bool: "types.Bool", int: "types.Int", Uint: "types.Uint", float: "types.Double", str: "types.String",
    bytes: "types.Bytes", type(None): "types.Null", Timestamp: "types.Timestamp", Duration: "types.Duration",
}  # fmt: skip


def go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), "*types.Type")


def guarded(function: str, is_member: bool, implementation: Function) -> Function:
    """Check the types that only the values tell, as the dispatcher of cel-go does."""
    signatures = [row.signature[1:] for row in functions()[function] if row.is_member == is_member]
    is_operator = function[0] in "_!-@" or function in ("startsWith", "endsWith", "contains", "matches")

    def check(meter: Meter, *values: Any) -> Any:
        for wanted in signatures:
            if len(wanted) == len(values) and all(map(fits, values, wanted)):
                return implementation(meter, *values)
        if is_operator:
            raise no_overload()
        if function == "size":
            raise EvaluationError("no such overload: size")
        shown = ", ".join(type_name(value) for value in values)
        raise EvaluationError(f"no such overload: {function}({shown})")

    return check


def fits(value: Any, wanted: CelType) -> bool:
    match wanted.kind:
        case "dyn" | "parameter":
            return True
        case "list":
            if not isinstance(value, LISTS):
                return False
            # Like cel-go, the first element speaks for all.
            return not len(value) or fits(value[0], wanted.parameters[0])
        case "map":
            return isinstance(value, MAPS)
        case "duration":
            return isinstance(value, Duration)
        case "timestamp":
            return isinstance(value, Timestamp)
    return type_name(value) == wanted.name


def _ranged(value: int, bounds: tuple[int, int], name: str) -> int:
    if not bounds[0] <= value <= bounds[1]:
        raise EvaluationError(f"{name} overflow")
    return value


def _number(value: int | float, like: Any) -> Any:
    if isinstance(like, float):
        return value
    if isinstance(like, Uint):
        return Uint(_ranged(int(value), _UINT, "unsigned integer"))
    return _ranged(int(value), _INT, "integer")


def add(meter: Meter, one: Any, other: Any) -> Any:
    if isinstance(one, Accumulator) and isinstance(other, LISTS):
        one.extend(other)
        return one
    if isinstance(one, LISTS) and isinstance(other, LISTS):
        meter.work(len(one) + len(other))
        return one.plus(other) if isinstance(one, ListView) else [*one, *other]
    if type(one) is type(other) and isinstance(one, (str, bytes)):
        meter.work((len(one) + len(other)) // 8)
        return one + other
    if is_number(one) and type(one) is type(other):
        return _number(one + other, one)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return bounded_timestamp(one.nanos + other.nanos, one.offset_seconds)
    if isinstance(one, Duration) and isinstance(other, Timestamp):
        return add(meter, other, one)
    if isinstance(one, Duration) and isinstance(other, Duration):
        return bounded_duration(one.nanos + other.nanos)
    raise no_overload()


def subtract(_meter: Meter, one: Any, other: Any) -> Any:
    if is_number(one) and type(one) is type(other):
        return _number(one - other, one)
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return bounded_duration(one.nanos - other.nanos)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return bounded_timestamp(one.nanos - other.nanos, one.offset_seconds)
    if isinstance(one, Duration) and isinstance(other, Duration):
        return bounded_duration(one.nanos - other.nanos)
    raise no_overload()


def multiply(_meter: Meter, one: Any, other: Any) -> Any:
    return _number(one * other, one)


def divide(_meter: Meter, one: Any, other: Any) -> Any:
    if isinstance(one, float):
        if other:
            return one / other
        if one == 0 or math.isnan(one):
            return math.nan
        return math.copysign(math.inf, one) * math.copysign(1, other)
    if not other:
        raise EvaluationError("division by zero")
    whole = abs(one) // abs(other)
    return _number(whole if (one < 0) == (other < 0) else -whole, one)


def modulo(_meter: Meter, one: Any, other: Any) -> Any:
    if not other:
        raise EvaluationError("modulus by zero")
    rest = abs(one) % abs(other)
    if (one, other) == (_INT[0], -1):
        raise EvaluationError("integer overflow")
    return _number(-rest if one < 0 else rest, one)


def negate(_meter: Meter, one: Any) -> Any:
    return _number(-one, one)


def contains(meter: Meter, wanted: Any, container: Any) -> bool:
    if isinstance(container, MAPS):
        return not isinstance(wanted, (*LISTS, *MAPS)) and find_index(container, wanted)[0]
    return any(equal(meter, item, wanted) for item in container)


def to_int(value: Any) -> int:
    if isinstance(value, str):
        if len(value) > 40 or not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
            raise ValueError
        return _in(int(value), _INT)
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, Timestamp):
        return value.nanos // NANOS
    if isinstance(value, Duration):
        return value.nanos
    return _ranged(int(value), _INT, "integer")


def _in(value: int, bounds: tuple[int, int]) -> int:
    if not bounds[0] <= value <= bounds[1]:
        raise ValueError
    return value


def to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if len(value) > 40 or not re.fullmatch(r"[0-9]+", value, re.ASCII):
            raise ValueError
        return Uint(_in(int(value), _UINT))
    if isinstance(value, float) and not -1 < value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(_ranged(int(value), _UINT, "unsigned integer"))


_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)


def to_double(value: Any) -> float:
    if isinstance(value, str) and not (len(value) < 1000 and _FLOAT.fullmatch(value)):
        raise ValueError
    return float(value)


_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value not in _BOOLS:
        raise ValueError
    return _BOOLS[value]


def to_string(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    return value.name if isinstance(value, CelType) else str(value)


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode(errors="surrogatepass")


def to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, str):
        return parse_timestamp(value)
    return value if isinstance(value, Timestamp) else bounded_timestamp(value * NANOS)


def to_duration(value: Any) -> Duration:
    if isinstance(value, str):
        return parse_duration(value)
    return value if isinstance(value, Duration) else bounded_duration(value)


def _conversion(convert: Callable[[Any], Any], target: str) -> Function:
    def function(_meter: Meter, value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, OverflowError):
            raise EvaluationError(f"type conversion error from '{type_name(value)}' to '{target}'") from None

    return function


def _ordering(decide: Callable[[int, int], bool]) -> Function:
    return lambda _meter, one, other: decide(compare(one, other), 0)


def _not(_meter: Meter, value: Any) -> bool:
    if type(value) is not bool:
        raise no_overload()
    return not value


def _type(_meter: Meter, value: Any) -> CelType:
    name = type_name(value)
    return CelType("type", name) if name != "type" else parse_type("type")


OPERATORS: dict[str, Function] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "-_": negate,
    "!_": _not,
    "_==_": equal,
    "_!=_": lambda meter, one, other: not equal(meter, one, other),
    "_<_": _ordering(operator.lt),
    "_<=_": _ordering(operator.le),
    "_>_": _ordering(operator.gt),
    "_>=_": _ordering(operator.ge),
    "@in": contains,
    "size": lambda _meter, value: len(value),
    "dyn": lambda _meter, value: value,
    "type": _type,
    "int": _conversion(to_int, "int"),
    "uint": _conversion(to_uint, "uint"),
    "double": _conversion(to_double, "double"),
    "bool": _conversion(to_bool, "bool"),
    "string": _conversion(to_string, "string"),
    "bytes": _conversion(to_bytes, "bytes"),
    "timestamp": _conversion(to_timestamp, "google.protobuf.Timestamp"),
    "duration": _conversion(to_duration, "google.protobuf.Duration"),
}
