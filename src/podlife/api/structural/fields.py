"""Fields of a value by its schema: unknown ones are removed, absent ones get their defaults.

All functions change the value in place. `Budget` bounds the work and the size of what defaults add: a few bytes of a
request can ask for many copies of a large default.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from podlife.api.codec import encode
from podlife.api.structural.schema import ABSENT, Schema

_META = frozenset({"apiVersion", "kind", "metadata"})
_MOST_UNKNOWN = 100
# Larger ones are written with an exponent.
_LARGEST_WHOLE = 1e21


class TooExpensiveError(ValueError):
    """A value takes too long to check against its schema, or becomes too large by its defaults."""


class Budget:
    """Steps that may still be taken for one object. A step is about a microsecond."""

    __slots__ = ("left",)

    def __init__(self, steps: int = 3_000_000) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooExpensiveError(
                "the object is too large for the schema of its custom resource definition"
            )


def prune(value: Any, schema: Schema, *, is_resource: bool = False) -> list[str]:
    """Remove fields that the schema does not specify; returns their paths, sorted. Metadata is left alone at the root
    of a resource, and in embedded ones."""
    unknown: list[str] = []
    if is_resource:
        _prune_object(value, schema, "", unknown, embedded=True)
    else:
        _prune(value, schema, "", unknown)
    return sorted(unknown)


def _prune(value: Any, schema: Schema | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_object(value, schema, path, unknown, embedded=schema is not None and schema.embedded)
    elif isinstance(value, list):
        items = None if schema is None else schema.items
        if schema is not None and schema.preserve and items is None:
            return
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                at = f"{path}[{index}]"
                if schema is not None and schema.preserve:
                    _keep(item, items, at, unknown)
                else:
                    _prune(item, items, at, unknown)


def _keep(value: Any, schema: Schema | None, path: str, unknown: list[str]) -> None:
    """Prune what is specified inside of a value whose unknown fields are preserved."""
    if schema is None:
        return
    if isinstance(value, dict):
        _prune_object(value, schema, path, unknown, embedded=schema.embedded, keep=True)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _keep(item, schema.items, f"{path}[{index}]", unknown)


def _prune_object(
    obj: dict[str, Any],
    schema: Schema | None,
    path: str,
    unknown: list[str],
    *,
    embedded: bool,
    keep: bool = False,
) -> None:
    properties = {} if schema is None else schema.properties
    additional = None if schema is None else schema.additional
    allows = schema is not None and schema.allows_additional is not None
    keep = keep or (schema is not None and schema.preserve)
    gone = []
    for name, value in obj.items():
        if embedded and name in _META:
            continue
        inner = properties.get(name)
        if inner is not None or allows:
            if isinstance(value, dict | list):
                _prune(
                    value,
                    inner if inner is not None else additional,
                    f"{path}.{name}" if path else name,
                    unknown,
                )
        elif not keep:
            gone.append(name)
    for name in gone:
        del obj[name]
        if len(unknown) < _MOST_UNKNOWN:
            unknown.append(f"{path}.{name}" if path else name)


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """Remove nulls where the schema allows none and has no default for them."""
    if isinstance(value, dict):
        gone = []
        for name, item in value.items():
            inner = None if schema is None else schema.field(name)
            if item is None:
                if inner is not None and not inner.nullable and inner.default is ABSENT:
                    gone.append(name)
            elif inner is not None and isinstance(item, dict | list):
                drop_nulls(item, inner)
        for name in gone:
            del value[name]
    elif schema is not None and schema.items is not None:
        for item in value:
            if isinstance(item, dict | list):
                drop_nulls(item, schema.items)


def whole_numbers(value: Any) -> None:
    """Make 1.0 the integer that Go writes for it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            whole_numbers(item)
        elif type(item) is float and item.is_integer() and abs(item) < _LARGEST_WHOLE:
            value[key] = int(item)


def default(value: Any, schema: Schema | None, budget: Budget) -> None:
    """Set defaults, also for nulls where the schema allows none."""
    if schema is None or not schema.has_defaults:
        return
    if isinstance(value, dict):
        _default_object(value, schema, budget)
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            if item is None and not schema.items.nullable:
                value[index] = _copy(schema.items, budget)
            default(value[index], schema.items, budget)


def _default_object(obj: dict[str, Any], schema: Schema, budget: Budget) -> None:
    budget.spend(len(schema.properties))
    for name, inner in schema.properties.items():
        if inner.default is not ABSENT and (name not in obj or (obj[name] is None and not inner.nullable)):
            obj[name] = _copy(inner, budget)
    for name, item in obj.items():
        inner_schema = schema.field(name)
        if inner_schema is None or not inner_schema.has_defaults:
            continue
        if item is None and not inner_schema.nullable and name not in schema.properties:
            obj[name] = _copy(inner_schema, budget)
        default(obj[name], inner_schema, budget)


def _copy(schema: Schema, budget: Budget) -> Any:
    if schema.default is ABSENT:
        return None
    if isinstance(schema.default, dict | list | str):
        budget.spend(len(encode(schema.default)))
    return deepcopy(schema.default)
