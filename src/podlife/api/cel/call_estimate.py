"""The estimated cost of calls, by function: rules of cel-go, its extensions and Kubernetes' own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from podlife.api.cel.ranges import FREE, UNKNOWN, Range, fixed
from podlife.api.cel.runtime_cost import AUTHORIZATION_CHECK, REGEX, TRAVERSAL, constant_cost_functions
from podlife.api.cel.syntax import Literal, Node
from podlife.api.cel.types import CelType, is_exact

_LARGEST = 2**64 - 1
_LONGEST_NAME_REGEX, _LONGEST_FORMAT = 128, 64


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument: its node if it has one, and what is known about its size."""

    node: Node | None
    type: CelType
    path: tuple[str, ...]
    known: Range | None

    @property
    def size(self) -> Range:
        return self.known or UNKNOWN


@dataclass(frozen=True, slots=True)
class CallEstimate:
    cost: Range
    result: Range | None = None


Element = Callable[[Operand], Operand | None]


def estimate_call(
    function: str, overload: str, target: Operand | None, args: list[Operand], element: Element
) -> CallEstimate:
    """The call alone, without its arguments."""
    found = _extension(overload, target, args) or _kubernetes(function, overload, target, args, element)
    return found or _standard(overload, target, args) or CallEstimate(fixed(1))


def _traversed(size: Range, factor: float = TRAVERSAL) -> Range:
    return size.scaled(factor)


def _regex(text: Range, pattern: Range) -> Range:
    return _traversed(text + fixed(1)).times(pattern.scaled(REGEX))


_COMPARISONS = frozenset({"equals", "not_equals"}) | {
    f"{name}_{kind}"
    for name in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
}


def _standard(overload: str, target: Operand | None, args: list[Operand]) -> CallEstimate | None:
    if overload in _COMPARISONS:
        most = min(args[0].size.most, args[1].size.most)
        return CallEstimate(_traversed(Range(min(most, 1), most)))
    if overload in ("add_string", "add_bytes", "add_list"):
        result = args[0].size + args[1].size
        return CallEstimate(fixed(1) if overload == "add_list" else _traversed(result), result)
    if overload == "in_list":
        return CallEstimate(args[1].size.scaled(1))
    if overload in ("string_to_bytes", "bytes_to_string", "strings_quote"):
        size = args[0].size
        results = {
            "string_to_bytes": Range(size.least, size.most * 4 & _LARGEST),
            "bytes_to_string": Range(size.least // 4, size.most),
            "strings_quote": Range(size.least + 2, size.most * 2 + 2 & _LARGEST),
        }
        return CallEstimate(_traversed(size), results[overload])
    if overload in ("starts_with_string", "ends_with_string"):
        return CallEstimate(_traversed(args[0].size))
    if target is None:
        return None
    if overload == "string_format":
        return CallEstimate(_traversed(target.size))
    if overload == "matches_string":
        return CallEstimate(_regex(target.size, args[0].size))
    if overload == "contains_string":
        return CallEstimate(_traversed(target.size).times(_traversed(args[0].size)))
    return None


def _allocating(size: Range, factor: float = 1.0) -> CallEstimate:
    return CallEstimate(size.scaled(factor) + fixed(11), size)


def _whole(operand: Operand, otherwise: int) -> int:
    if isinstance(operand.node, Literal) and type(operand.node.value) is int:
        return max(operand.node.value, 0)
    return otherwise


def _extension(overload: str, target: Operand | None, args: list[Operand]) -> CallEstimate | None:
    match overload:
        case "list_slice" if target:
            end = _whole(args[1], target.size.most)
            return _allocating(fixed((end - _whole(args[0], 0)) & _LARGEST))
        case "lists_range":
            return _allocating(fixed(_whole(args[0], _LARGEST)))
        case "list_reverse" if target:
            return _allocating(target.size)
        case "list_flatten" | "list_flatten_int" if target:
            return _allocating(target.size, float(_whole(args[0], _LARGEST) if args else 1))
        case "list_distinct" if target:
            return _allocating(target.size.times(target.size), 2.0)
        case "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list":
            factor = 2.0 if overload == "list_sets_equivalent_list" else 1.0
            return CallEstimate(args[0].size.times(args[1].size).scaled(factor) + fixed(1))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")) and target:
        size = args[0].size if args else target.size
        is_text = overload.split("_")[1] in ("string", "bytes")
        return _allocating(size.times(size), 2.0 + TRAVERSAL if is_text else 2.0)
    return None


_ARGUMENT_TRAVERSALS = frozenset({"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"})
_SAME_SIZE = frozenset({"lowerAscii", "upperAscii", "substring", "trim"})
_LIST_TRAVERSALS = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})


def _kubernetes(
    function: str, overload: str, target: Operand | None, args: list[Operand], element: Element
) -> CallEstimate | None:
    if function == "_==_":
        return _equality(args)
    if function in constant_cost_functions or overload == "cidr_ip":
        return CallEstimate(fixed(1))
    if function == "check":
        return CallEstimate(fixed(AUTHORIZATION_CHECK))
    if function in _ARGUMENT_TRAVERSALS or function == "ip":
        return CallEstimate(_traversed(args[0].size))
    if function in ("url", "jsonpatch.escapeKey"):
        return CallEstimate(_traversed(args[0].size), args[0].size)
    if function == "ip.isCanonical":
        return CallEstimate(_traversed(args[0].size, 2 * TRAVERSAL))
    if target is None:
        return None
    if function in _SAME_SIZE:
        return CallEstimate(_traversed(target.size), target.size)
    if function in _LIST_TRAVERSALS:
        return _list_traversal(target, element)
    special = _SPECIAL.get(function)
    return special(overload, target, args, element) if special else None


def _equality(args: list[Operand]) -> CallEstimate | None:
    one, other = args
    if not is_exact(one.type, other.type):
        return None
    name = one.type.name
    if name == "kubernetes.NamedFormat":
        return CallEstimate(_traversed(Range(1, _LONGEST_FORMAT)))
    if name == "kubernetes.URL":
        most = other.known.most if other.known else 1
        return CallEstimate(_traversed(Range(1, most)))
    if name in ("net.IP", "net.CIDR") or (one.type.kind == "struct" and name.startswith("kubernetes.")):
        return CallEstimate(fixed(1))
    return None


def _list_traversal(target: Operand, element: Element) -> CallEstimate:
    item = element(target)
    if item is None:
        return CallEstimate(_traversed(target.size))
    each = fixed(1)
    if item.type.kind in ("string", "bytes"):
        each += _traversed(item.size)
    return CallEstimate(target.size.times(each))


_Rule = Callable[[str, Operand, list[Operand], Element], CallEstimate]


def _replace(_overload: str, target: Operand, args: list[Operand], _element: Element) -> CallEstimate:
    size, old, new = target.size, args[0].size, args[1].size
    if old.least == 0:
        count_most, kept_most = min(size.most + 1, _LARGEST), size.most
    elif new.most <= old.least:
        count_most, kept_most = 0, size.most
    else:
        count_most, kept_most = math.ceil(float(size.most) / float(old.least)), 0
    if old.most == 0:
        count_least, kept_least = min(size.least + 1, _LARGEST), size.least
    elif old.most <= new.least:
        count_least, kept_least = 0, size.least
    else:
        count_least, kept_least = math.ceil(float(size.least) / float(old.most)), 0
    result = Range(count_least, count_most).times(new) + Range(kept_least, kept_most)
    return CallEstimate(_traversed(size, 2 * TRAVERSAL), result)


def _split(_overload: str, target: Operand, args: list[Operand], _element: Element) -> CallEstimate:
    most = target.size.most
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value & _LARGEST
    return CallEstimate(_traversed(target.size, 2 * TRAVERSAL), Range(0, most))


def _join(_overload: str, target: Operand, args: list[Operand], element: Element) -> CallEstimate:
    count = target.size
    item = element(target)
    size = count.times(item.size) if item else FREE
    if args:
        size += args[0].size.times(Range(max(count.least - 1, 0), max(count.most - 1, 0)))
    return CallEstimate(_traversed(size), size)


def _find(_overload: str, target: Operand, args: list[Operand], _element: Element) -> CallEstimate:
    return CallEstimate(_regex(target.size, args[0].size), Range(0, target.size.most))


def _contains(overload: str, _target: Operand, args: list[Operand], _element: Element) -> CallEstimate:
    """Bytes of an address are compared: 4 or 16; a text is parsed before."""
    address = Range(4, 16)
    cost = _traversed(address + address)
    if overload.startswith("cidr_contains_cidr"):
        cost += _traversed(address) + fixed(1)
    if overload.endswith("_string"):
        cost += _traversed(args[0].size)
    return CallEstimate(cost)


def _validate(_overload: str, _target: Operand, args: list[Operand], _element: Element) -> CallEstimate:
    return CallEstimate(_traversed(args[0].size).scaled(_LONGEST_NAME_REGEX * REGEX))


def _selector(_overload: str, _target: Operand, args: list[Operand], _element: Element) -> CallEstimate:
    length = args[0].size
    return CallEstimate(fixed(10) + _traversed(length) + length.scaled(0.5).scaled(50.0))


_SPECIAL: dict[str, _Rule] = {
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "containsIP": _contains,
    "containsCIDR": _contains,
    "validate": _validate,
    "fieldSelector": _selector,
    "labelSelector": _selector,
}
