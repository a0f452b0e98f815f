"""Decodes Kubernetes' protobuf, which Go clients send by default.

A message carries no names, so it is decoded with the generated table of types, which has the field numbers. The result
is the plain dictionary that the object's JSON would give, to be checked like it. Encoding is not needed: clients that
send protobuf accept JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import msgspec

from podlife.api.codec import Object, format_micro_time, format_time
from podlife.api.schema import Type, type_named, type_of_kind

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Deeper than any type of Kubernetes that is served.
_MAX_DEPTH = 64

Reader = Callable[[Any], Any]
"""Converts a wire value (integer or bytes) into its JSON value."""


def decode(data: bytes) -> Object:
    """Decode an object, with `kind` and `apiVersion`; raises ValueError on anything else."""
    if data[:4] != _MAGIC:
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix k8s")
    try:
        envelope = dict(_fields(data[4:]))
        names = {number: _text(value) for number, value in _fields(envelope.get(1, b""))}
        api_version, kind = names.get(1, ""), names.get(2, "")
        found = type_of_kind(api_version, kind)
        if found is None:
            raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
        return {"kind": kind, "apiVersion": api_version, **_read(found.key, envelope.get(2, b""), 0)}
    except (IndexError, TypeError, OverflowError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise ValueError(f"the protobuf message is broken: {error}") from None


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """Field numbers and values of a message, in order."""
    if not isinstance(data, bytes):
        raise ValueError("the protobuf message is broken: a message was expected")
    found: list[tuple[int, Any]] = []
    position, end = 0, len(data)
    while position < end:
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


def _varint(data: bytes, position: int) -> tuple[int, int]:
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


def _read(key: str, data: bytes, depth: int) -> Object:
    result: Object = {}
    _read_into(result, _plan(key), data, depth)
    return result


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


def _read_into(result: Object, plan: _Plan, data: bytes, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ValueError("the protobuf message is nested too deeply")
    for number, raw in _fields(data):
        field = plan.get(number)
        if field is None:
            continue
        if isinstance(field, dict):
            _read_into(result, field, raw, depth + 1)
            continue
        name, kind = field
        if kind[0] == "[":
            result.setdefault(name, []).append(_value(kind[1:], raw, depth))
        elif kind[0] == "{":
            entry_key, value = _entry(kind[1:], raw, depth)
            result.setdefault(name, {})[entry_key] = value
        else:
            result[name] = _value(kind, raw, depth)


def _entry(kind: str, raw: bytes, depth: int) -> tuple[str, Any]:
    entry = dict(_fields(raw))
    empty: Any = 0 if kind in "bil" else b""
    value = entry.get(2, empty)
    if kind[0] == "[":
        # Protobuf maps cannot have lists as values: each is wrapped in a message with one field.
        return _text(entry.get(1, b"")), [_value(kind[1:], item, depth) for _, item in _fields(value)]
    return _text(entry.get(1, b"")), _value(kind, value, depth)


def _value(kind: str, raw: Any, depth: int) -> Any:
    if kind[0] == "@":
        return _read(kind[1:], raw, depth + 1)
    return _SCALARS[kind](raw)


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
    try:
        return msgspec.json.decode(inner) if inner else None
    except RecursionError:
        raise ValueError("the JSON in the protobuf message is nested too deeply") from None


_SCALARS: dict[str, Reader] = {
    "s": _text,
    "b": bool,
    "i": _signed,
    "l": _signed,
    "y": lambda raw: b64encode(raw).decode(),
    "T": _time,
    "M": partial(_time, format_=format_micro_time),
    "Q": _quantity,
    "I": _int_or_string,
    "R": _raw_extension,
}
