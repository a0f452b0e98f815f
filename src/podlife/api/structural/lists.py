"""Lists of type set and map: no element, and no key, may occur twice. Embedded resources have valid metadata."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import msgspec

from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate
from podlife.api.structural.schema import Schema


def validate_lists(value: Any, schema: Schema | None, path: str = "") -> FieldErrors:
    """The duplicates in all lists of the value."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, dict | list):
                inner = schema.properties.get(name)
                if inner is not None:
                    yield from validate_lists(item, inner, f"{path}.{name}" if path else name)
                else:
                    yield from validate_lists(item, schema.additional, f"{path}[{name}]")
    elif isinstance(value, list):
        if schema.list_type == "set":
            yield from (duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value))
        elif schema.list_type == "map":
            yield from _repeated_keys(value, schema, path)
        if schema.items is not None:
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    yield from validate_lists(item, schema.items, f"{path}[{index}]")


def _repeated(values: list[Any]) -> Iterator[int]:
    """Where each repeated value occurs for the second time."""
    seen: dict[Hashable, int] = {}
    for index, value in enumerate(values):
        # As JSON: 1 and true are different values.
        key = msgspec.json.encode(value, order="sorted")
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            yield index


def _repeated_keys(values: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    for index, value in enumerate(values):
        if value is not None and not isinstance(value, dict):
            yield bad_value(f"{path}[{index}]", value, "must be an object for an array of list-type map")
            return
    keys = [
        {name: item[name] for name in schema.list_map_keys if name in item} for item in map(_or_empty, values)
    ]
    yield from (duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys))


def _or_empty(value: Any) -> dict[str, Any]:
    return value or {}
