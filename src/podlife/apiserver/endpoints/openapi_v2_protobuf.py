"""The OpenAPI v2 document as a protobuf message: what kubectl validates a `kind: List` with, on its own side.

Written are the definitions, which is what clients read of it; paths stand in the JSON only. The numbers are those of
gnostic's OpenAPIv2.proto. What a schema has besides goes along as an extension or not at all: `enum` and `default` are
for the server to check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.codec import encode

__all__ = ["ASKED_FOR", "MEDIA_TYPE", "write_document"]

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# kubectl asks for it by a name that is no media type; it must not come back so.
ASKED_FOR = frozenset({MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})

# Document, Info
_SWAGGER, _INFO, _PATHS, _DEFINITIONS = 1, 2, 8, 9
_TITLE, _VERSION = 1, 2
# Schema
_TEXTS = {"$ref": 1, "format": 2, "description": 4}
_REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 19, 21, 22, 23, 25, 31
# An entry of a map, and what is only ever there once.
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
            # Read as YAML, which JSON is.
            parts.append(_part(_EXTENSION, _named(key, _part(_YAML, encode(value)))))
    return b"".join(parts)


def _named(name: str, value: bytes) -> bytes:
    return _text(_NAME, name) + _part(_VALUE, value)


def _text(number: int, value: str) -> bytes:
    return _part(number, value.encode())


def _part(number: int, value: bytes) -> bytes:
    """A field of bytes, which text and messages are too."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
