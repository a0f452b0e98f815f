"""As much of JSON Schema as the schema of a policy needs. A word that is not known here is an error: nothing that the
schema asks for goes unchecked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}
_SILENT = {"$schema", "$defs", "title", "description", "default", "additionalProperties"}


def is_valid(schema: dict[str, Any], value: Any, root: dict[str, Any] | None = None) -> bool:
    whole = root or schema
    return all(_holds(word, schema, value, whole) for word in schema if word not in _SILENT)


def _holds(word: str, schema: dict[str, Any], value: Any, root: dict[str, Any]) -> bool:
    wanted = schema[word]
    match word:
        case "$ref":
            return is_valid(root["$defs"][wanted.removeprefix("#/$defs/")], value, root)
        case "anyOf":
            return any(is_valid(each, value, root) for each in wanted)
        case "allOf":
            return all(is_valid(each, value, root) for each in wanted)
        case "type":
            return _TYPES[wanted](value)
        case "const":
            return type(value) is type(wanted) and value == wanted
        case "enum":
            return value in wanted
        case "pattern":
            return not isinstance(value, str) or re.search(wanted, value) is not None
        case "minimum":
            return not isinstance(value, int) or value >= wanted
        case "minItems":
            return not isinstance(value, list) or len(value) >= wanted
        case "minProperties":
            return not isinstance(value, dict) or len(value) >= wanted
        case "required":
            return not isinstance(value, dict) or all(key in value for key in wanted)
        case "items":
            return not isinstance(value, list) or all(is_valid(wanted, each, root) for each in value)
        case "properties":
            return not isinstance(value, dict) or _properties(schema, value, root)
    raise AssertionError(f"{word} is not known here")


def _properties(schema: dict[str, Any], value: dict[str, Any], root: dict[str, Any]) -> bool:
    assert schema["additionalProperties"] is False
    known = schema["properties"]
    return all(key in known and is_valid(known[key], each, root) for key, each in value.items())
