"""JSONSchemaProps, the schema in a custom resource definition, decoded as kube-apiserver decodes it.

It stays a dictionary: known fields of the right types, without what Go omits when empty. It is nested, but never deeper
than `DEEPEST`, so that walks over a schema may be recursive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from podlife.api.schema import DecodeError, go_kind

Props = dict[str, Any]

DEEPEST = 64
_MOST_UNKNOWN = 100
_NO_PART_OF_GO_PATHS = re.compile(r"\[[0-9]+\]|(\.(?:properties|patternProperties|definitions))\.[^.]+")

# s string, b bool, l int64, f float64, j any JSON, S a schema; `[` a list, `{` a map. Those in `_POINTERS` are kept if
# they have the zero value.
FIELDS = {
    "id": "s",
    "$schema": "s",
    "$ref": "s",
    "description": "s",
    "type": "s",
    "format": "s",
    "title": "s",
    "default": "j",
    "maximum": "f",
    "exclusiveMaximum": "b",
    "minimum": "f",
    "exclusiveMinimum": "b",
    "maxLength": "l",
    "minLength": "l",
    "pattern": "s",
    "maxItems": "l",
    "minItems": "l",
    "uniqueItems": "b",
    "multipleOf": "f",
    "enum": "[j",
    "maxProperties": "l",
    "minProperties": "l",
    "required": "[s",
    "items": "S or list",
    "allOf": "[S",
    "oneOf": "[S",
    "anyOf": "[S",
    "not": "S",
    "properties": "{S",
    "additionalProperties": "S or bool",
    "patternProperties": "{S",
    "dependencies": "dependencies",
    "additionalItems": "S or bool",
    "definitions": "{S",
    "externalDocs": "externalDocs",
    "example": "j",
    "nullable": "b",
    "x-kubernetes-preserve-unknown-fields": "b",
    "x-kubernetes-embedded-resource": "b",
    "x-kubernetes-int-or-string": "b",
    "x-kubernetes-list-map-keys": "[s",
    "x-kubernetes-list-type": "s",
    "x-kubernetes-map-type": "s",
    "x-kubernetes-validations": "rules",
}
_POINTERS = frozenset(
    {
        "$ref",
        "default",
        "example",
        "maximum",
        "minimum",
        "maxLength",
        "minLength",
        "maxItems",
        "minItems",
        "multipleOf",
        "maxProperties",
        "minProperties",
        "items",
        "not",
        "additionalProperties",
        "additionalItems",
        "externalDocs",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "reason",
        "optionalOldSelf",
    }
)
RULE_FIELDS = {
    "rule": "s",
    "message": "s",
    "messageExpression": "s",
    "reason": "s",
    "fieldPath": "s",
    "optionalOldSelf": "b",
}
_GO_NAMES = {"s": "string", "b": "bool", "l": "int64", "f": "float64", "S": "v1.JSONSchemaProps"}
_TYPES: dict[str, tuple[type, ...]] = {"s": (str,), "b": (bool,), "l": (int,), "f": (int, float)}


def decode_props(value: Any, path: str) -> tuple[Props, list[str]]:
    """The schema in canonical form, and the unknown fields that were removed. Raises DecodeError."""
    decoder = _Decoder()
    props = decoder.schema(value, path, 0)
    return props, list(decoder.unknown)


class _Decoder:
    def __init__(self) -> None:
        self.unknown: dict[str, None] = {}
        # Upstream decodes some fields by methods of their own, which are not strict.
        self._lenient = 0

    def schema(self, value: Any, path: str, depth: int) -> Props:
        if depth > DEEPEST:
            raise DecodeError(f"{path}: a schema may be nested {DEEPEST} levels deep")
        if not isinstance(value, dict):
            raise _mismatch(value, path, "S")
        return self._struct(value, FIELDS, path, depth)

    def _struct(self, value: dict[str, Any], fields: dict[str, str], path: str, depth: int) -> Props:
        read: Props = {}
        for name, item in value.items():
            kind = fields.get(name)
            at = f"{path}.{name}"
            if kind is None:
                if not self._lenient and len(self.unknown) < _MOST_UNKNOWN:
                    self.unknown[f"unknown field {json.dumps(at, ensure_ascii=False)}"] = None
            elif item is not None:
                decoded = self._value(item, kind, at, depth)
                if name in _POINTERS or decoded not in ("", [], {}, False) or decoded == 0 != decoded:
                    read[name] = decoded
        return read

    def _value(self, value: Any, kind: str, path: str, depth: int) -> Any:
        match kind:
            case "j":
                return value
            case "S":
                return self.schema(value, path, depth + 1)
            case "S or bool" if isinstance(value, bool):
                return value
            case "S or list" if isinstance(value, list):
                return self._inner(
                    [(str(index), each) for index, each in enumerate(value)], path, depth, list
                )
            case "S or bool" | "S or list":
                self._lenient += 1
                found = self.schema(value, path, depth + 1)
                self._lenient -= 1
                return found
            case "dependencies" if isinstance(value, dict):
                return {
                    key: each if isinstance(each, list) else self.schema(each, path, depth + 1)
                    for key, each in value.items()
                }
            case "externalDocs" if isinstance(value, dict):
                return self._struct(value, {"description": "s", "url": "s"}, path, depth)
            case "rules" if isinstance(value, list):
                return [self._rule(each, f"{path}[{index}]", depth) for index, each in enumerate(value)]
        return self._plain(value, kind, path, depth)

    def _plain(self, value: Any, kind: str, path: str, depth: int) -> Any:
        if kind[0] == "[" and isinstance(value, list):
            return [
                self._value(each, kind[1:], f"{path}[{index}]", depth) for index, each in enumerate(value)
            ]
        if kind[0] == "{" and isinstance(value, dict):
            return {key: self._value(each, kind[1:], f"{path}.{key}", depth) for key, each in value.items()}
        if type(value) not in _TYPES.get(kind, ()) or (kind == "l" and not -(2**63) <= value < 2**63):
            raise _mismatch(value, path, kind)
        return value

    def _inner(self, items: list[tuple[str, Any]], path: str, depth: int, make: type) -> Any:
        self._lenient += 1
        found = make(self.schema(each, f"{path}[{name}]", depth + 1) for name, each in items)
        self._lenient -= 1
        return found

    def _rule(self, value: Any, path: str, depth: int) -> Props:
        if not isinstance(value, dict):
            raise _mismatch(value, path, "ValidationRule")
        return {"rule": "", **self._struct(value, RULE_FIELDS, path, depth)}


def _mismatch(value: Any, path: str, kind: str) -> DecodeError:
    """In the words of Go's decoder, whose paths have neither indices nor keys of maps."""
    shown = go_kind(value)
    if shown == "number" and kind == "l":
        shown = f"number {json.dumps(value)}"
    path = _NO_PART_OF_GO_PATHS.sub(r"\1", path)
    go_name = _GO_NAMES.get(kind.lstrip("[{"), kind)
    prefix = "[]" * kind.startswith("[") + "map[string]" * kind.startswith("{")
    return DecodeError(
        f"json: cannot unmarshal {shown} into Go struct field JSONSchemaProps.{path} of type {prefix}{go_name}"
    )


def subschemas(props: Props, path: str) -> Iterator[tuple[Props, str]]:
    """Every schema directly inside this one, with its path, in the order in which upstream visits them."""
    if isinstance(items := props.get("items"), dict):
        yield items, f"{path}.items"
    for index, each in enumerate(items if isinstance(items, list) else ()):
        yield each, f"{path}.items[{index}]"
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(props.get(junctor, ())):
            yield each, f"{path}.{junctor}[{index}]"
    if "not" in props:
        yield props["not"], f"{path}.not"
    for field in ("properties", "patternProperties", "definitions"):
        for key, each in props.get(field, {}).items():
            yield each, f"{path}.{field}[{key}]"
    for field in ("additionalProperties", "additionalItems"):
        if isinstance(each := props.get(field), dict):
            yield each, f"{path}.{field}"
    for key, each in props.get("dependencies", {}).items():
        if isinstance(each, dict):
            yield each, f"{path}.dependencies[{key}]"


def every_schema(props: Props) -> Iterator[Props]:
    """This schema and all inside it."""
    yield props
    for inner, _ in subschemas(props, ""):
        yield from every_schema(inner)
