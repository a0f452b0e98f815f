"""What a call costs while an expression runs: cel-go's rules, and those of Kubernetes for its own functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from podlife.api.cel.values import LISTS, MAPS, Meter, Optional, find, keys, size

TRAVERSAL, REGEX = 0.1, 0.25
_LIST, _STRUCT = 10, 40
AUTHORIZATION_CHECK = 350_000

_Cost = Callable[[Meter, str, Sequence[Any], Any], int]
constant_cost_functions = frozenset({
    "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason",
    "error", "errored", "masked", "prefixLength", "family", "isUnspecified", "isLoopback",
    "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger",
    "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major",
    "minor", "patch", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery",
})  # fmt: skip
_TRAVERSALS = [
    "url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "cidr", "isIP", "isCIDR",
    "quantity", "isQuantity", "semver", "isSemver",
]  # fmt: skip
_COMPARED = frozenset({"equals", "not_equals"}) | {
    f"{name}_{kind}"
    for name in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
}
_FIRST = frozenset({
    "starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote",
    "string_format",
})  # fmt: skip


def call_cost(meter: Meter, function: str, overload: str, args: Sequence[Any], result: Any) -> int:
    """`overload` is empty where only the arguments decide which one runs."""
    special = _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(function)
    if special is not None and (args or function in constant_cost_functions):
        return special(meter, overload, args, result)
    if function == "_==_" and hasattr(args[0], "has_unit_equality"):
        return 1
    if overload in _COMPARED:
        return math.ceil(min(_size(args[0]), _size(args[1])) * TRAVERSAL)
    if overload in _FIRST:
        return math.ceil(_size(args[0]) * TRAVERSAL)
    if overload in ("add_string", "add_bytes"):
        return math.ceil((_size(args[0]) + _size(args[1])) * TRAVERSAL)
    if overload == "in_list":
        return _size(args[1])
    if overload == "matches_string":
        return _regex(_size(args[0]), _size(args[1]))
    if overload == "contains_string":
        return math.ceil(_size(args[0]) * TRAVERSAL) * math.ceil(_size(args[1]) * TRAVERSAL)
    return 1


def _size(value: Any) -> int:
    if isinstance(value, Optional):
        return _size(value.value) if value.has_value else 1
    return size(value)


def _regex(text: int, pattern: int) -> int:
    return math.ceil((1.0 + text) * TRAVERSAL) * math.ceil(pattern * REGEX)


def traversal_cost(meter: Meter, value: Any) -> int:
    """The cost of reading all of a value."""
    meter.work(1)
    if isinstance(value, str):
        return int(len(value.encode(errors="replace")) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, LISTS):
        return sum(traversal_cost(meter, item) for item in value)
    if isinstance(value, MAPS):
        return sum(
            traversal_cost(meter, key) + traversal_cost(meter, find(value, key)[1]) for key in keys(value)
        )
    return 1


def _once(factor: float) -> _Cost:
    return lambda _meter, _overload, args, _result: math.ceil(size(args[0]) * factor * TRAVERSAL)


def _find(_meter: Meter, _overload: str, args: Sequence[Any], _result: Any) -> int:
    return _regex(size(args[0]), size(args[1]))


def _ip(_meter: Meter, overload: str, args: Sequence[Any], _result: Any) -> int:
    return 1 if overload == "cidr_ip" else math.ceil(size(args[0]) * TRAVERSAL)


def _contains(base: float, extra: int, overload_of_text: str) -> _Cost:
    """A CIDR contains an address or another: compared by bytes, of which a text has to be parsed first."""

    def cost(_meter: Meter, overload: str, args: Sequence[Any], _result: Any) -> int:
        cidr = size(args[0])
        total = math.ceil((cidr + cidr) * TRAVERSAL)
        if base:
            total += math.ceil(cidr * base) + extra
        if overload == overload_of_text:
            total += math.ceil(size(args[1]) * TRAVERSAL)
        return total

    return cost


def _validate(_meter: Meter, _overload: str, args: Sequence[Any], _result: Any) -> int:
    return _regex(size(args[1]), args[0].regex_size) if hasattr(args[0], "regex_size") else 1


def _selector(_meter: Meter, _overload: str, args: Sequence[Any], _result: Any) -> int:
    return selector_cost(size(args[1]))


def selector_cost(length: int) -> int:
    requirements = math.ceil(length * 0.5)
    return _LIST + math.ceil(length * TRAVERSAL) + math.ceil(requirements * float(_LIST + _STRUCT))


def _list_output(_meter: Meter, _overload: str, _args: Sequence[Any], result: Any) -> int:
    return size(result) + 1 + _LIST


def _flatten(_meter: Meter, _overload: str, args: Sequence[Any], _result: Any) -> int:
    depth = args[1] if len(args) == 2 and isinstance(args[1], int) else 1
    return int(size(args[0]) * float(depth)) + 1 + _LIST


def _self_compare(index: int) -> _Cost:
    def cost(_meter: Meter, _overload: str, args: Sequence[Any], _result: Any) -> int:
        items = args[index]
        if not isinstance(items, LISTS):
            return 1
        factor = 2.0 + (TRAVERSAL if len(items) and isinstance(items[0], (str, bytes)) else 0.0)
        return int(len(items) ** 2 * factor) + 1 + _LIST

    return cost


def _sets(factor: int) -> _Cost:
    return lambda _meter, _overload, args, _result: 1 + int(size(args[0]) * size(args[1]) * float(factor))


_BY_OVERLOAD: dict[str, _Cost] = {
    "list_slice": _list_output,
    "lists_range": _list_output,
    "list_reverse": _list_output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _self_compare(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
for _kind in (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
):
    _BY_OVERLOAD[f"list_{_kind}_sort"] = _self_compare(0)
    _BY_OVERLOAD[f"list_{_kind}_sortByAssociatedKeys"] = _self_compare(1)

_BY_FUNCTION: dict[str, _Cost] = {
    **{name: lambda _meter, _overload, _args, _result: 1 for name in constant_cost_functions},
    **{name: _once(1) for name in _TRAVERSALS},
    **{
        name: lambda meter, _overload, args, _result: traversal_cost(meter, args[0])
        for name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
    },
    "check": lambda _meter, _overload, _args, _result: AUTHORIZATION_CHECK,
    "replace": _once(2),
    "split": _once(2),
    "ip.isCanonical": _once(2),
    "join": lambda _meter, _overload, _args, result: math.ceil(size(result) * 2 * TRAVERSAL),
    "find": _find,
    "findAll": _find,
    "ip": _ip,
    "containsIP": _contains(0, 0, "cidr_contains_ip_string"),
    "containsCIDR": _contains(TRAVERSAL, 1, "cidr_contains_cidr_string"),
    "validate": _validate,
    "fieldSelector": _selector,
    "labelSelector": _selector,
}
