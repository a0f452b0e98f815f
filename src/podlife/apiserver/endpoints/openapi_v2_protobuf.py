"""OpenAPI v2 document as a protobuf message, with which kubectl validates a `kind: List` on its own side.

It contains the definitions, which is what clients read; paths are in the JSON only. Field numbers are those of
gnostic's OpenAPIv2.proto. Other parts of a schema become extensions or are left out: `enum` and `default` are checked
by the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.codec import encode

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# kubectl requests it by a name that is not a media type; the response must not repeat it.
ASKED_FOR = frozenset({MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})

# Document, Info
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_TITLE, _VERSION = 1, 2
# Schema
_TEXTS = {"$ref": 1, "format": 2, "description": 4}
_REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 19, 21, 22, 23, 25, 31
# An entry of a map, and fields that occur once.
_NAME, _VALUE, _ONLY = 1, 2, 1
_YAML = 2


def write_document(document: Mapping[str, Any]) -> bytes:
    info = _text(_TITLE, document["info"]["title"]) + _text(_VERSION, document["info"]["version"])
    return (
        _text(_SWAGGER, document["swagger"])
        + _part(_INFO, info)
        + _part(_PATHS, b"")
        + _part(_DEFINITIONS, _schemas(document["definitions"]))
    )


def _schemas(schemas: Mapping[str, Mapping[str, Any]]) -> bytes:
    return b"".join(_part(_ONLY, _named(name, _schema(schema))) for name, schema in schemas.items())


def _schema(schema: Mapping[str, Any]) -> bytes:
    parts = [_text(number, schema[key]) for key, number in _TEXTS.items() if key in schema]
    parts += [_text(_REQUIRED, name) for name in schema.get("required", ())]
    if "additionalProperties" in schema:
        parts.append(_part(_ADDITIONAL, _part(_ONLY, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_part(_TYPE, _text(_ONLY, schema["type"])))
    if "items" in schema:
        parts.append(_part(_ITEMS, _part(_ONLY, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_part(_PROPERTIES, _schemas(schema["properties"])))
    for key, value in schema.items():
        if key.startswith("x-"):
            # Parsed as YAML, of which JSON is a subset.
            parts.append(_part(_EXTENSION, _named(key, _part(_YAML, encode(value)))))
    return b"".join(parts)


def _named(name: str, value: bytes) -> bytes:
    return _text(_NAME, name) + _part(_VALUE, value)


def _text(number: int, value: str) -> bytes:
    return _part(number, value.encode())


def _part(number: int, value: bytes) -> bytes:
    """A bytes field, which also holds text and messages."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
