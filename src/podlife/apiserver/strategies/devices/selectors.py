"""Expressions that select devices, compiled as the scheduler of Kubernetes compiles them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from podlife.api import cel
from podlife.api.cel import ANY, BOOL, STRING, CelType, map_of, parse_type, struct
from podlife.api.codec import Object
from podlife.api.field_errors import FieldErrors, bad_value, forbidden, required, too_long
from podlife.apiserver.expressions import go_type_name
from podlife.apiserver.strategies.devices.values import validate_list
from podlife.memory import emptied_with_memory

_MOST_SELECTORS = 32
_LONGEST_EXPRESSION = 10 * 1024
_MOST_COST = 1_000_000
_MOST_ATTRIBUTES = 32
# What is wrong with one may be told in a megabyte.
_MOST_KEPT = 128


class _Attributes(Mapping[str, CelType]):
    """Attributes of a domain: whatever their names, they have one type."""

    def __getitem__(self, name: str) -> CelType:
        return _ATTRIBUTE

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _at_most(longest: int, of: CelType) -> CelType:
    return replace(of, max_elements=longest, min_size=1)


_ATTRIBUTE = _at_most(64, ANY)
_DOMAIN, _ID = _at_most(63, STRING), _at_most(32, STRING)
_CAPACITY = replace(parse_type("kubernetes.Quantity"), min_size=1)


def _by_domain(value: CelType, names: Mapping[str, CelType]) -> CelType:
    inner = replace(_at_most(_MOST_ATTRIBUTES, map_of(_ID, value)), fields=names)
    return _at_most(_MOST_ATTRIBUTES, map_of(_DOMAIN, inner))


_DEVICE = struct(
    "kubernetes.DRADevice",
    {
        "driver": _DOMAIN,
        "allowMultipleAllocations": _at_most(1, BOOL),
        "attributes": _by_domain(_ATTRIBUTE, _Attributes()),
        "capacity": _by_domain(_CAPACITY, {}),
    },
)
_ENVIRONMENT = cel.Environment({"device": _DEVICE}, with_bind=True)


def validate_selectors(holder: Object, path: str) -> FieldErrors:
    return validate_list(holder.get("selectors"), f"{path}.selectors", _validate_selector, _MOST_SELECTORS)


def _validate_selector(selector: Object, path: str) -> FieldErrors:
    if (given := selector.get("cel")) is None:
        yield required(f"{path}.cel")
        return
    expression, at = given["expression"], f"{path}.cel.expression"
    if len(expression.encode()) > _LONGEST_EXPRESSION:
        yield too_long(at, _LONGEST_EXPRESSION)
        return
    problem, is_too_costly = _judge(expression)
    if problem:
        yield bad_value(at, expression, problem)
    elif is_too_costly:
        yield forbidden(at, "too complex, exceeds cost limit")


@emptied_with_memory
@lru_cache(maxsize=_MOST_KEPT)
def _judge(expression: str) -> tuple[str, bool]:
    """What is wrong with an expression, and whether evaluating it could cost too much."""
    try:
        program = cel.compile(expression, _ENVIRONMENT)
    except cel.CelError as error:
        return f"compilation failed: {error}", False
    if program.type.name not in ("bool", "any"):
        return f"must evaluate to bool or the unknown type, not {go_type_name(program.type)}", False
    return "", program.estimated_cost().most > _MOST_COST
