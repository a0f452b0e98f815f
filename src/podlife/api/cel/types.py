"""Types of CEL: how they are named, when one may stand for another, and unification of type parameters.

The rules and names are those of cel-go's checker, since its error messages print them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

_NOTHING: Mapping[str, CelType] = MappingProxyType({})


@dataclass(frozen=True, eq=False, slots=True)
class CelType:
    """`kind` is `struct` or `opaque` for named types, `parameter` for type parameters, otherwise equal to `name`.

    The members below `fields` come from a schema: they bound sizes and say how a JSON value is read.
    """

    kind: str
    name: str
    parameters: tuple[CelType, ...] = ()
    fields: Mapping[str, CelType] = field(default_factory=dict)
    property_names: Mapping[str, str] = field(default_factory=dict)
    max_elements: int = 0
    min_size: int = 0
    is_nullable: bool = False
    # How a string is read: byte, duration, date, date-time; or `int-or-string`.
    format: str = ""
    list_type: str = ""
    list_keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = _SHOWN.get(self.kind, self.name)
        if not self.parameters:
            return shown
        return f"{shown}({', '.join(map(str, self.parameters))})"


_SHOWN = {"error": "!error!", "null": "null"}


def _simple(name: str) -> CelType:
    return CelType(name, name)


BOOL, BYTES, DOUBLE, INT, UINT, STRING = map(_simple, ("bool", "bytes", "double", "int", "uint", "string"))
DURATION, TIMESTAMP, DYN, ERROR, NULL = map(_simple, ("duration", "timestamp", "dyn", "error", "null"))
TYPE = _simple("type")
# Stands for any value, as `dyn` does, but expressions cannot iterate over it.
ANY = CelType("dyn", "any")
SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
STRUCTS = frozenset(
    {
        *("kubernetes.Quantity", "kubernetes.URL", "kubernetes.Semver", "kubernetes.NamedFormat"),
        *(f"kubernetes.authorization.{name}" for name in ("Authorizer", "Decision", "PathCheck")),
        *(f"kubernetes.authorization.{name}" for name in ("GroupCheck", "ResourceCheck")),
    }
)
_SIMPLE = {
    known.name: known
    for known in (BOOL, BYTES, DOUBLE, INT, UINT, STRING, DURATION, TIMESTAMP, DYN, ERROR, NULL, TYPE)
}


def list_of(element: CelType) -> CelType:
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType("opaque", "optional_type", (value,))


def type_of(described: CelType) -> CelType:
    return CelType("type", "type", (described,))


def struct(name: str, fields: Mapping[str, CelType] = _NOTHING) -> CelType:
    return CelType("struct", name, fields=fields)


def parameter(name: str) -> CelType:
    return CelType("parameter", name)


def parse_type(text: str) -> CelType:
    """`map(K, list(string))` as the table of functions writes it; one capital letter is a type parameter."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        if len(name) == 1:
            return parameter(name)
        if name in STRUCTS:
            return struct(name)
        return _SIMPLE.get(name) or CelType("opaque", name)
    inner = tuple(parse_type(part) for part in _split(rest[:-1]))
    return CelType(name if name in ("list", "map", "type") else "opaque", name, inner)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def is_dyn(candidate: CelType) -> bool:
    return candidate.kind == "dyn"


def is_exact(one: CelType, other: CelType) -> bool:
    return one is other or (
        one.kind == other.kind
        and one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(map(is_exact, one.parameters, other.parameters))
    )


def unwrap_optional(wrapped: CelType) -> tuple[CelType, bool]:
    if wrapped.kind == "opaque" and wrapped.name == "optional_type":
        return wrapped.parameters[0], True
    return wrapped, False


class Substitutions:
    """What type parameters stand for. A failed attempt leaves no trace, without copying all that is known."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._undo: list[tuple[str, CelType | None]] = []
        self._fresh = 0

    def fresh(self) -> CelType:
        self._fresh += 1
        return parameter(f"_var{self._fresh - 1}")

    def instantiate(self, signature: Sequence[CelType]) -> list[CelType]:
        """The types of an overload with parameters that nothing else uses."""
        renamed: dict[str, CelType] = {}
        return [self._rename(one, renamed) for one in signature]

    def _rename(self, one: CelType, renamed: dict[str, CelType]) -> CelType:
        if one.kind == "parameter":
            if one.name not in renamed:
                renamed[one.name] = self.fresh()
            return renamed[one.name]
        if not one.parameters:
            return one
        return CelType(one.kind, one.name, tuple(self._rename(inner, renamed) for inner in one.parameters))

    def resolve(self, one: CelType, *, free_to_dyn: bool = False) -> CelType:
        """The type with all that is known about its parameters."""
        while one.kind == "parameter":
            bound = self._bound.get(one.name)
            if bound is None:
                return DYN if free_to_dyn else one
            one = bound
        if not one.parameters:
            return one
        inner = tuple(self.resolve(inner, free_to_dyn=free_to_dyn) for inner in one.parameters)
        if all(map(lambda new, old: new is old, inner, one.parameters)):
            return one
        return CelType(one.kind, one.name, inner)

    def unify(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        """Whether each given type is assignable to the wanted one; parameters are bound if all are."""
        self._undo.clear()
        if len(given) == len(wanted) and all(map(self._is_assignable, given, wanted)):
            return True
        for name, before in reversed(self._undo):
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before
        return False

    def _bind(self, name: str, bound: CelType) -> None:
        self._undo.append((name, self._bound.get(name)))
        self._bound[name] = bound

    def _is_assignable(self, one: CelType, other: CelType) -> bool:
        if other.kind == "parameter":
            is_valid, is_bound = self._substitutes(one, other)
            if is_valid or is_bound:
                return is_valid
        if one.kind == "parameter":
            return self._substitutes(other, one)[0]
        if one.kind in ("dyn", "error") or other.kind in ("dyn", "error"):
            return True
        if one.kind == "null" or other.kind == "null":
            return _may_be_null(other if one.kind == "null" else one)
        if one.kind != other.kind:
            return False
        if one.kind == "type":
            return True
        return (
            one.name == other.name
            and len(one.parameters) == len(other.parameters)
            and all(map(self._is_assignable, one.parameters, other.parameters))
        )

    def _substitutes(self, one: CelType, free: CelType) -> tuple[bool, bool]:
        """Whether `one` can stand for the parameter `free`, and whether that was bound before."""
        if is_exact(one, free):
            return True, True
        bound = self._bound.get(free.name)
        if bound is not None:
            if is_exact(one, bound):
                return True, True
            if not self._is_assignable(one, bound):
                return False, True
            general = most_general(one, bound)
            if not self._occurs(free, general):
                self._bind(free.name, general)
            return True, True
        if self._occurs(free, one):
            return False, False
        self._bind(free.name, one)
        return True, False

    def _occurs(self, free: CelType, within: CelType) -> bool:
        if is_exact(free, within):
            return True
        if within.kind == "parameter":
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs(free, bound)
        return any(self._occurs(free, inner) for inner in within.parameters)


def _may_be_null(other: CelType) -> bool:
    return other.kind in ("opaque", "struct", "duration", "timestamp", "null")


def most_general(one: CelType, other: CelType) -> CelType:
    return one if _is_less_specific(one, other) else other


def _is_less_specific(one: CelType, other: CelType) -> bool:
    if one.kind in ("dyn", "parameter"):
        return True
    if other.kind in ("dyn", "parameter") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    return (
        one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(map(_is_less_specific, one.parameters, other.parameters))
    )
