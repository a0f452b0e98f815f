"""CEL types of structural schemas, and values of such types read from JSON.

A schema is plain JSON (an OpenAPI v3 schema as in a CustomResourceDefinition). Sizes that it does not bound are
bounded by the size of a request, which is what the estimated cost is based on.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from podlife.api.cel import types
from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.times import parse_duration, parse_timestamp
from podlife.api.cel.types import CelType
from podlife.api.cel.values import ListView, MapView

MAX_REQUEST = 3 * 1024 * 1024
# Of a type of the schema: the smallest JSON text, and the longest where the format bounds it.
_STRING_FORMATS = {
    "byte": ("bytes", 2, MAX_REQUEST - 2),
    "duration": ("duration", 3, 32),
    "date": ("timestamp", 12, 12),
    "date-time": ("timestamp", 21, 32),
}
_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-/]*", re.ASCII).fullmatch


def escape_name(name: str) -> str | None:
    """The name of a property in expressions; None if it has none."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _IDENTIFIER(name):
        return None
    return re.sub(r"__|[.\-/]", lambda match: _ESCAPES[match[0]], name)


def schema_type(
    schema: Mapping[str, Any], *, is_resource: bool = False, name: str = "object"
) -> CelType | None:
    """The type of values of a structural schema; None if expressions cannot see them.

    `is_resource` says that it is the schema of a whole object, where `metadata.name` is known in any case.
    `name` is what errors call an object of the schema; its fields are called `name.field`.
    """
    if schema.get("x-kubernetes-int-or-string"):
        longest = 4 * max(schema["maxLength"], 0) if "maxLength" in schema else MAX_REQUEST - 2
        return _made("dyn", schema, min_size=1, max_elements=longest, format="int-or-string")
    if is_resource:
        schema = _with_object_meta(schema)
    match schema.get("type"):
        case "array":
            return _list_type(schema, name)
        case "object":
            return _object_type(schema, name)
        case "string":
            return _string_type(schema)
        case "boolean":
            return _made("bool", schema, min_size=4)
        case "number":
            return _made("double", schema, min_size=1)
        case "integer":
            return _made("int", schema, min_size=1)
    return None


def _made(kind: str, schema: Mapping[str, Any], **rest: Any) -> CelType:
    return CelType(kind, rest.pop("name", kind), is_nullable=bool(schema.get("nullable")), **rest)


def _with_object_meta(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    text = {"type": "string"}
    properties = schema.get("properties") or {}
    meta = properties.get("metadata") or {}
    named = meta.get("properties") or {}
    has_meta = meta.get("type") == "object" and all(
        (named.get(key) or {}).get("type") == "string" for key in ("name", "generateName")
    )
    if has_meta and all(
        (properties.get(key) or {}).get("type") == "string" for key in ("kind", "apiVersion")
    ):
        return schema
    metadata = {"type": "object", "properties": {"name": text, "generateName": text}}
    return {**schema, "properties": {**properties, "kind": text, "apiVersion": text, "metadata": metadata}}


def _child(schema: Mapping[str, Any], name: str) -> CelType | None:
    return schema_type(schema, is_resource=bool(schema.get("x-kubernetes-embedded-resource")), name=name)


def _list_type(schema: Mapping[str, Any], name: str) -> CelType | None:
    items = schema.get("items")
    element = _child(items, f"{name}.@idx") if items else None
    if element is None:
        return None
    most = schema.get("maxItems")
    most = max(most, 0) if most is not None else (MAX_REQUEST - 2) // (element.min_size + 1)
    return _made(
        "list",
        schema,
        parameters=(element,),
        max_elements=most,
        min_size=2,
        list_type=schema.get("x-kubernetes-list-type", ""),
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
    )


def _object_type(schema: Mapping[str, Any], name: str) -> CelType | None:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        value = _child(additional, f"{name}.@elem")
        if value is None:
            return None
        most = schema.get("maxProperties")
        most = max(most, 0) if most is not None else (MAX_REQUEST - 2) // (value.min_size + 6)
        return _made("map", schema, parameters=(types.STRING, value), max_elements=most, min_size=2)
    required = set(schema.get("required") or ())
    fields: dict[str, CelType] = {}
    names: dict[str, str] = {}
    least = 2
    for key, below in (schema.get("properties") or {}).items():
        escaped = escape_name(key)
        field = _child(below, f"{name}.{escaped}")
        if field is None:
            continue
        if escaped is not None:
            fields[escaped], names[escaped] = field, key
        if key in required and "default" not in below:
            least += len(key.encode()) + field.min_size + 4
    return _made("struct", schema, name=name, fields=fields, property_names=names, min_size=least)


def _string_type(schema: Mapping[str, Any]) -> CelType:
    if schema.get("format") in _STRING_FORMATS:
        kind, least, most = _STRING_FORMATS[schema["format"]]
        if kind == "bytes" and "maxLength" in schema:
            most = max(schema["maxLength"], 0)
        return _made(kind, schema, min_size=least, max_elements=most, format=schema["format"])
    if "maxLength" in schema:
        # In characters, of which each may take four bytes.
        longest = 4 * max(schema["maxLength"], 0)
    elif schema.get("enum"):
        longest = max(len(text.encode()) if isinstance(text, str) else 0 for text in schema["enum"])
    else:
        longest = MAX_REQUEST - 2
    return _made("string", schema, min_size=2, max_elements=longest)


def convert(value: Any, of: CelType) -> Any:
    """The JSON value as a value of the type. Raises EvaluationError where it does not fit."""
    kind = of.kind
    if kind == "dyn" and not of.format:
        return value
    if value is None:
        if of.is_nullable:
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")
    if kind in ("struct", "map"):
        if not isinstance(value, dict):
            raise EvaluationError("invalid data, expected a map for the provided schema with type=object")
        return MapView(value, of, convert)
    if kind == "list":
        if not isinstance(value, list):
            raise EvaluationError("invalid data, expected an array for the provided schema with type=array")
        return ListView(value, of, convert)
    return _convert_scalar(value, of)


_JSON_TYPES = {"string": str, "bool": bool, "int": int}


def _convert_scalar(value: Any, of: CelType) -> Any:
    if of.kind == "double" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if of.kind == "dyn":
        if type(value) in (str, int):
            return value
        raise EvaluationError("invalid data, expected XIntOrString value to be either a string or integer")
    if of.format and isinstance(value, str):
        return _convert_format(value, of.format)
    if type(value) is _JSON_TYPES.get(of.kind):
        return value
    expected = {"double": "float"}.get(of.kind, of.kind)
    raise EvaluationError(f"invalid data, expected {expected}, got {_GO_TYPES.get(type(value), 'string')}")


_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def _convert_format(text: str, name: str) -> Any:
    try:
        match name:
            case "byte":
                return base64.b64decode(text, validate=True)
            case "duration":
                return parse_duration(text)
            case "date":
                if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
                    raise ValueError
                return parse_timestamp(f"{text}T00:00:00Z")
        return parse_timestamp(text)
    except (ValueError, binascii.Error) as error:
        kind = {"byte": "byte formatted string", "date": "date formatted string", "duration": "duration"}
        raise EvaluationError(
            f"Invalid {kind.get(name, 'date-time formatted string')} {text}: {error}"
        ) from None
