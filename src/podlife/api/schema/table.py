"""The generated table of Kubernetes' types: every field of every served kind.

`tools/generate_schema.py` writes the data beside this module from Kubernetes' Go types; it is never edited by hand. It
is loaded on first use, and has what decoding, encoding and patching need; descriptions are in `openapi_documents`.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources

import msgspec

# Part of every group and version.
_ANY_VERSION = frozenset({"DeleteOptions", "Status"})

_GO_SCALARS = {
    "s": "string",
    "b": "bool",
    "i": "int32",
    "l": "int64",
    "y": "[]uint8",
    "T": "v1.Time",
    "M": "v1.MicroTime",
    "Q": "resource.Quantity",
    "I": "intstr.IntOrString",
    "R": "runtime.RawExtension",
    "f": "float64",
    "P": "v1.JSONSchemaProps",
}


class Field(msgspec.Struct, frozen=True, array_like=True):
    """One field of a type.

    `type` is a letter for a scalar (s string, b bool, i int32, l int64, f float64, y bytes, T time, M micro time,
    Q quantity, I int-or-string, R anything, P a schema, which `api.structural` checks), `@name` for a type, or `[` or
    `{` before either for a list or map."""

    name: str
    type: str
    # Field numbers down to it in protobuf, where an embedded struct is a message of its own.
    numbers: tuple[int, ...] = ()
    pointer: bool = False
    # Written even if empty: not omitempty in Go, or a struct.
    keep: bool = False
    strategy: str = ""
    merge_key: str = ""
    # The embedded struct it belongs to: part of the path in upstream's messages.
    embedded: str = ""
    own_go_type: str = ""
    # How server-side apply merges it, if not as usual (a list as a whole, a map by its keys): `set`, `map:` and the
    # keys of an element, `atomic` for a map, `granular` for a struct whose type is atomic.
    merge: str = ""
    # The value of an absent key of a `map:` list.
    key_default: str | int | None = None

    @property
    def go_type(self) -> str:
        return self.own_go_type or go_type(self.type)


def go_type(kind: str) -> str:
    """Upstream's name for a type in messages."""
    match kind[0]:
        case "[":
            return "[]" + go_type(kind[1:])
        case "{":
            return "map[string]" + go_type(kind[1:])
        case "@":
            return "v1." + kind.rpartition(".")[2]
    return _GO_SCALARS[kind]


class Type:
    """A struct of Kubernetes: its fields by JSON name, in the order in which they are written."""

    __slots__ = ("atomic", "fields", "key")

    def __init__(self, key: str, fields: tuple[Field, ...], *, atomic: bool = False) -> None:
        self.key = key
        self.atomic = atomic
        self.fields = {field.name: field for field in fields}

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]


class _Table(msgspec.Struct):
    kinds: dict[str, dict[str, str]]
    types: dict[str, tuple[Field, ...]]
    # Structs that server-side apply merges as a whole.
    atomic: frozenset[str] = frozenset()


# At import: msgspec crashes the process if two threads compile a type at once.
_decode = msgspec.json.Decoder(_Table).decode


@cache
def _table() -> _Table:
    data = resources.files(__package__).joinpath("types.json.gz").read_bytes()
    return _decode(gzip.decompress(data))


@cache
def type_named(key: str) -> Type:
    """The type that a `@key` in the table refers to."""
    table = _table()
    return Type(key, table.types[key], atomic=key in table.atomic)


def type_of_kind(api_version: str, kind: str) -> Type | None:
    """The type of a served kind, or None."""
    if kind in _ANY_VERSION:
        api_version = "v1"
    key = _table().kinds.get(api_version, {}).get(kind)
    return None if key is None else type_named(key)


def kinds() -> dict[str, list[str]]:
    """Every kind in the table, by its apiVersion."""
    return {version: sorted(names) for version, names in _table().kinds.items()}
