"""The slow walk over an object that does not fit its shape: reports why, or makes it fit.

It visits the document in the order of Go's decoder, so that it reports the same error as upstream, in upstream's words:
a wrong type is remembered and the walk continues, a value that cannot be parsed (a time, a quantity) ends it. Unknown
fields are collected and removed; nulls become absent fields or zero elements, as in Go.
"""

from __future__ import annotations

import json
import string
from base64 import b64encode
from typing import Any

from podlife.api.quantity import canonical_quantity
from podlife.api.schema.table import Field, Type, go_type, type_named
from podlife.api.schema.times import canonical_micro_time, canonical_time

# Upstream's limit.
_MOST_UNKNOWN = 100
_LIMITS = {"i": 2**31, "l": 2**63}
_MATCHING = {"s": str, "b": bool}
_BASE64 = frozenset(string.ascii_letters + string.digits + "+/")


def _zero(kind: str) -> Any:
    """The value of a null element."""
    return {"[": [], "{": {}, "@": {}, "Q": "0", "i": 0, "l": 0, "b": False, "R": None}.get(kind[0], "")


def go_kind(value: Any) -> str:
    """Go's name for the kind of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


def _shown(value: Any) -> str:
    """A value in a message about an integer: a number with its text, anything else by its kind."""
    kind = go_kind(value)
    return f"number {json.dumps(value)}" if kind == "number" else kind


class Walk:
    """`struct` walks an object; `unknown` and `mismatch` are the findings."""

    def __init__(self) -> None:
        self.unknown: dict[str, None] = {}
        self.mismatch: str | None = None
        # Current position, for messages: the struct, and the names of the fields down to here.
        self._struct_name = ""
        self._fields: list[str] = []

    def struct(self, value: dict[str, Any], kind: Type, path: str = "") -> dict[str, Any]:
        """The decoded object, without nulls and unknown fields. Raises ValueError."""
        read: dict[str, Any] = {}
        outer = self._struct_name
        for name, item in value.items():
            field = kind.fields.get(name)
            at = f"{path}.{name}" if path else name
            if field is None:
                self._remember_unknown(at)
            elif item is not None:
                self._struct_name = kind.name
                depth = len(self._fields)
                self._fields += (field.embedded, name) if field.embedded else (name,)
                read[name] = self._value(item, field.type, at, field)
                del self._fields[depth:]
        self._struct_name = outer
        return read

    def _remember_unknown(self, path: str) -> None:
        if len(self.unknown) < _MOST_UNKNOWN:
            self.unknown[f"unknown field {json.dumps(path, ensure_ascii=False)}"] = None

    def _value(self, value: Any, kind: str, path: str, field: Field | None = None) -> Any:
        first = kind[0]
        if first == "[" and isinstance(value, list):
            return [
                _zero(kind[1:]) if item is None else self._value(item, kind[1:], f"{path}[{index}]")
                for index, item in enumerate(value)
            ]
        if first == "{" and isinstance(value, dict):
            return {
                key: _zero(kind[1:]) if item is None else self._value(item, kind[1:], f"{path}.{key}")
                for key, item in value.items()
            }
        if first == "@" and isinstance(value, dict):
            return self.struct(value, type_named(kind[1:]), path)
        if first in "[{@":
            self._remember_mismatch(go_kind(value), field.go_type if field else go_type(kind))
            return _zero(kind)
        return self._scalar(value, kind, field.go_type if field else go_type(kind))

    def _scalar(self, value: Any, kind: str, named: str) -> Any:
        match kind:
            case "R" | "P":
                return value
            case "Q":
                return canonical_quantity(_quantity_text(value))
            case "T" | "M":
                return self._time(value, kind)
            case "I":
                return self._int_or_string(value)
            case "y":
                return self._bytes(value, named)
            case "i" | "l":
                return self._integer(value, _LIMITS[kind], named)
        if type(value) is _MATCHING[kind]:
            return value
        self._remember_mismatch(go_kind(value), named)
        return _zero(kind)

    def _integer(self, value: Any, limit: int, named: str) -> int:
        if type(value) is int and -limit <= value < limit:
            return value
        self._remember_mismatch(_shown(value), named)
        return 0

    def _bytes(self, value: Any, named: str) -> str:
        if isinstance(value, list):
            return b64encode(bytes(self._byte(item) for item in value)).decode()
        if not isinstance(value, str):
            self._remember_mismatch(go_kind(value), named)
            return ""
        if (at := _check_base64(value)) is not None:
            self.mismatch = self.mismatch or f"illegal base64 data at input byte {at}"
            return ""
        return value.replace("\r", "").replace("\n", "")

    def _byte(self, value: Any) -> int:
        """Go also takes bytes as a list of numbers."""
        if value is None or (type(value) is int and 0 <= value < 256):
            return value or 0
        self._remember_mismatch(_shown(value), "uint8")
        return 0

    # Types with their own parser end the walk on an error, unlike other scalars.

    def _time(self, value: Any, kind: str) -> str:
        if not isinstance(value, str):
            raise ValueError(self._mismatch_text(go_kind(value), "string"))
        return canonical_time(value) if kind == "T" else canonical_micro_time(value)

    def _int_or_string(self, value: Any) -> int | str:
        if isinstance(value, str) or (type(value) is int and -(2**31) <= value < 2**31):
            return value
        raise ValueError(self._mismatch_text(_shown(value), "int32"))

    def _remember_mismatch(self, shown: str, named: str) -> None:
        if self.mismatch is None:
            self.mismatch = self._mismatch_text(shown, named)

    def _mismatch_text(self, shown: str, named: str) -> str:
        path = ".".join(self._fields)
        return (
            f"json: cannot unmarshal {shown} into Go struct field {self._struct_name}.{path} of type {named}"
        )


def _quantity_text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value) if go_kind(value) == "number" else ""


def _check_base64(text: str) -> int | None:
    """Byte offset at which Go's standard decoder, which skips line ends, requires padding and ignores stray bits,
    rejects the text; None if it is valid."""
    data = text.encode().decode("latin-1")
    in_group = 0
    for at, letter in enumerate(data):
        if letter in "\r\n":
            continue
        if letter == "=":
            return _check_padding(data, at, in_group)
        if letter not in _BASE64:
            return at
        in_group = (in_group + 1) % 4
    return len(data) - in_group if in_group else None


def _check_padding(data: str, at: int, in_group: int) -> int | None:
    if in_group < 2:
        return at
    rest = [(place, letter) for place, letter in enumerate(data[at + 1 :], at + 1) if letter not in "\r\n"]
    if in_group == 2:
        if not rest:
            return len(data)
        if rest[0][1] != "=":
            return rest[0][0] - 1
        del rest[0]
    return rest[0][0] if rest else None
