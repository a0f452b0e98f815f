"""Decodes Kubernetes' protobuf, which Go clients send by default.

A message carries no names, so it is decoded with the generated table of types, which has the field numbers. The result
is the plain dictionary that the object's JSON would give, to be checked like it. Encoding is not needed: clients that
send protobuf accept JSON.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import msgspec

from podlife.api.codec import MOST_VALUES, Object, format_micro_time, format_time, has_too_many_values
from podlife.api.schema import Type, type_named, type_of_kind

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Two levels for each that a schema in a CustomResourceDefinition may have; deeper than any other type that is served.
_MAX_DEPTH = 140
_SCHEMA = "apiextensions.JSONSchemaProps"
# A schema or something else: one value in JSON, a message with a field for each in protobuf.
_SCHEMA_OR = f"{_SCHEMA}Or"
# Larger whole numbers are written with an exponent.
_LARGEST_WHOLE = 1e21

Reader = Callable[[Any], Any]
"""Converts a wire value (integer or bytes) into its JSON value."""


class TooManyValuesError(ValueError):
    """The message has more fields and elements than an object may have."""

    def __init__(self) -> None:
        super().__init__(f"an object may have at most {MOST_VALUES} fields and elements")


def decode(data: bytes) -> Object:
    """Decode an object, with `kind` and `apiVersion`; raises ValueError on anything else."""
    if data[:4] != _MAGIC:
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        # Parts of a view are not copied, however deeply messages are nested.
        envelope = dict(_fields(memoryview(data)[4:]))
        names = {number: _text(value) for number, value in _fields(envelope.get(1, b""))}
        api_version, kind = names.get(1, ""), names.get(2, "")
        found = type_of_kind(api_version, kind)
        if found is None:
            raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
        read = _Decoder().message(found.key, envelope.get(2, b""), 0)
        return {"kind": kind, "apiVersion": api_version, **read}
    except (
        IndexError,
        TypeError,
        OverflowError,
        UnicodeDecodeError,
        struct.error,
        msgspec.DecodeError,
    ) as error:
        raise ValueError(f"the protobuf message is broken: {error}") from None


def _fields(data: bytes | memoryview) -> list[tuple[int, Any]]:
    """Field numbers and values of a message, in order."""
    if not isinstance(data, bytes | memoryview):
        raise ValueError("the protobuf message is broken: a message was expected")
    found: list[tuple[int, Any]] = []
    position, end = 0, len(data)
    while position < end:
        if len(found) > MOST_VALUES:
            raise TooManyValuesError
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            found.append((number, value))
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"the protobuf message is broken: wire type {wire}")
        if position + size > end:
            raise ValueError("the protobuf message is broken: unexpected end")
        found.append((number, data[position : position + size]))
        position += size
    return found


def _varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = data[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("the protobuf message is broken: a number is too long")


# By field number: a field (name and type), or an embedded message whose fields belong to the object.
_Plan = dict[int, "tuple[str, str] | _Plan"]


@cache
def _plan(key: str) -> _Plan:
    plan: _Plan = {}
    kind: Type = type_named(key)
    for field in kind.fields.values():
        if field.embedded == "TypeMeta" or not field.numbers:
            continue
        level = plan
        for number in field.numbers[:-1]:
            inner = level.setdefault(number, {})
            assert isinstance(inner, dict)
            level = inner
        level[field.numbers[-1]] = (field.name, field.type)
    return plan


class _Decoder:
    """Decodes one object, whose values it counts."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def message(self, key: str, data: bytes, depth: int) -> Object:
        result: Object = {}
        self._read_into(result, _plan(key), data, depth)
        return result

    def _read_into(self, result: Object, plan: _Plan, data: bytes, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ValueError("the protobuf message is nested too deeply")
        fields = _fields(data)
        self._left -= len(fields)
        if self._left < 0:
            raise TooManyValuesError
        for number, raw in fields:
            field = plan.get(number)
            if field is None:
                continue
            if isinstance(field, dict):
                self._read_into(result, field, raw, depth + 1)
                continue
            name, kind = field
            if kind[0] == "[":
                result.setdefault(name, []).append(self._value(kind[1:], raw, depth))
            elif kind[0] == "{":
                entry_key, value = self._entry(kind[1:], raw, depth)
                result.setdefault(name, {})[entry_key] = value
            else:
                result[name] = self._value(kind, raw, depth)

    def _entry(self, kind: str, raw: bytes, depth: int) -> tuple[str, Any]:
        entry = dict(_fields(raw))
        empty: Any = 0 if kind in "bil" else b""
        value = entry.get(2, empty)
        if kind[0] == "[":
            # Protobuf maps cannot have lists as values: each is wrapped in a message with one field.
            return _text(entry.get(1, b"")), [
                self._value(kind[1:], item, depth) for _, item in _fields(value)
            ]
        return _text(entry.get(1, b"")), self._value(kind, value, depth)

    def _value(self, kind: str, raw: Any, depth: int) -> Any:
        if kind == "P":
            return self.message(_SCHEMA, raw, depth + 1)
        if kind[0] != "@":
            return _SCALARS[kind](raw)
        read = self.message(kind[1:], raw, depth + 1)
        if not kind.startswith(_SCHEMA_OR, 1):
            return read
        for name in ("jSONSchemas", "property", "schema", "allows"):
            if name in read:
                return read[name]
        return False if kind.endswith("Bool") else None


def _text(raw: bytes) -> str:
    return str(raw, "utf-8")


def _signed(raw: int) -> int:
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _time(raw: bytes, format_: Callable[[datetime], str] = format_time) -> str | None:
    parts = dict(_fields(raw))
    if not parts:
        return None
    seconds, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
    return format_(_EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000))


def _quantity(raw: bytes) -> str:
    return _text(dict(_fields(raw)).get(1, b""))


def _int_or_string(raw: bytes) -> int | str:
    parts = dict(_fields(raw))
    return _text(parts.get(3, b"")) if parts.get(1, 0) else _signed(parts.get(2, 0))


def _raw_extension(raw: bytes) -> Any:
    inner = dict(_fields(raw)).get(1, b"")
    if has_too_many_values(bytes(inner)):
        raise TooManyValuesError
    try:
        return msgspec.json.decode(inner) if inner else None
    except RecursionError:
        raise ValueError("the JSON in the protobuf message is nested too deeply") from None


def _double(raw: bytes) -> float:
    value: float = struct.unpack("<d", raw)[0]
    if value - value != 0:
        raise ValueError(f"the protobuf message is broken: unsupported number {value}")
    return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE else value


_SCALARS: dict[str, Reader] = {
    "s": _text,
    "b": bool,
    "i": _signed,
    "l": _signed,
    "f": _double,
    "y": lambda raw: b64encode(raw).decode(),
    "T": _time,
    "M": partial(_time, format_=format_micro_time),
    "Q": _quantity,
    "I": _int_or_string,
    "R": _raw_extension,
}
