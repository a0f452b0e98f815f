"""Shapes of objects, as types that msgspec checks in C.

A shape is created from the table when its kind is first used. Converting a dictionary into it proves that every field
is known and of its type; converting it back gives what Go would write: without empty omitempty values, with structs and
fields that are always written, times and quantities in canonical form. `walk` reports why an object does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from podlife.api.quantity import canonical_quantity
from podlife.api.schema.table import Field, Type, type_named
from podlife.api.schema.times import canonical_micro_time, canonical_time


class _Text(str):
    """Text that Python checks: msgspec passes it to `_read`."""

    __slots__ = ()


class _Time(_Text):
    __slots__ = ()


class _MicroTime(_Text):
    __slots__ = ()


class _Quantity(_Text):
    __slots__ = ()


_INT32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_SCALARS: dict[str, Any] = {
    "s": str,
    "b": bool,
    "i": _INT32,
    "l": _INT64,
    "y": bytes,
    "T": _Time,
    "M": _MicroTime,
    "Q": _Quantity,
    "I": _INT32 | str,
    "R": Any,
    "P": Any,
}
_ZERO: dict[str, Any] = {"s": "", "b": False, "i": 0, "l": 0, "y": b""}
# Written even when unset: Go's zero time is null, its zero quantity "0".
_ALWAYS: dict[str, Callable[[], Any]] = {
    "s": str,
    "b": bool,
    "i": int,
    "l": int,
    "y": bytes,
    "T": lambda: None,
    "M": lambda: None,
    "Q": lambda: "0",
}


def _read(kind: type, value: Any) -> Any:
    if kind is _Quantity:
        # A number would be taken by its text, which decoding may have changed (1e3 is 1000.0): left to `walk`.
        if type(value) is str:
            return _Quantity(canonical_quantity(value.strip()))
    elif type(value) is str:
        return _Time(canonical_time(value)) if kind is _Time else _MicroTime(canonical_micro_time(value))
    raise ValueError("not a text")


def _python_type(kind: str) -> Any:
    match kind[0]:
        case "[":
            return list[_python_type(kind[1:])]  # type: ignore[misc]
        case "{":
            return dict[str, _python_type(kind[1:])]  # type: ignore[misc]
        case "@":
            return shape_of(type_named(kind[1:]))
    return _SCALARS[kind]


def _member(position: int, field: Field) -> tuple[str, Any, Any]:
    """One field for msgspec: a default from a factory is written, any other is omitted.

    So null equals absent wherever Go has a pointer; elsewhere it is rare, and left to `walk`."""
    kind, first = _python_type(field.type), field.type[0]
    # Not the JSON name: some (`continue`, `from`) are Python keywords.
    attribute = f"f{position}"
    if field.pointer or (first in "[{" and field.keep) or first in "RIP":
        return attribute, kind | None, msgspec.field(default=None, name=field.name)
    if first in "[{":
        factory = list if first == "[" else dict
        return attribute, kind, msgspec.field(default_factory=factory, name=field.name)
    if field.keep:
        written = kind | None if first in "TM" else kind
        always = kind if first == "@" else _ALWAYS[first]
        return attribute, written, msgspec.field(default_factory=always, name=field.name)
    if first in _ZERO:
        return attribute, kind, msgspec.field(default=_ZERO[first], name=field.name)
    return attribute, kind | None, msgspec.field(default=None, name=field.name)


@cache
def shape_of(kind: Type) -> type[msgspec.Struct]:
    """The shape of a type, created on first use together with all nested shapes."""
    return msgspec.defstruct(
        kind.name,
        [_member(position, field) for position, field in enumerate(kind.fields.values())],
        module=__name__,
        forbid_unknown_fields=True,
        omit_defaults=True,
        kw_only=True,
        gc=False,
    )


def fit(shape: type[msgspec.Struct], obj: dict[str, Any]) -> dict[str, Any]:
    """The object as Go would write it, sharing nothing with `obj`. Raises msgspec.ValidationError."""
    typed = msgspec.convert(obj, shape, dec_hook=_read)
    fitted: dict[str, Any] = msgspec.to_builtins(typed, enc_hook=str)
    return fitted
