"""What expressions may refer to: the functions of Kubernetes' base environment, types by name, and variables.

The functions stand in `functions.tsv`, which `tools/real-parts/cel -declarations` prints from upstream's environment
v1.36: name, overload, style, types of the arguments, type of the result. Their order decides which overload gives a
call its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from podlife.api.cel import types
from podlife.api.cel.types import CelType, parse_type

# Functions that only the operators of the grammar may call, or that upstream disables.
_HIDDEN = frozenset({"in", "_in_", "__not_strictly_false__"})


class Overload(NamedTuple):
    """`signature` is the type of the result, then those of the arguments; a member's target is the first argument."""

    name: str
    is_member: bool
    signature: tuple[CelType, ...]
    is_generic: bool


_JSON_PATCH = "jsonpatch.escapeKey\tstring_jsonpatch_escapeKey_string|global|string|string"


@cache
def functions() -> Mapping[str, tuple[Overload, ...]]:
    table = (files("podlife.api.cel") / "functions.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in [*table.splitlines(), _JSON_PATCH])
    return {name: tuple(map(_overload, overloads)) for name, *overloads in rows if name not in _HIDDEN}


def _overload(text: str) -> Overload:
    name, style, arguments, result = text.split("|")
    signature = tuple(parse_type(one) for one in [result, *filter(None, arguments.split("; "))])
    return Overload(name, style == "member", signature, any(map(_is_generic, signature)))


def _is_generic(one: CelType) -> bool:
    return one.kind == "parameter" or any(map(_is_generic, one.parameters))


@cache
def named_types() -> Mapping[str, CelType]:
    """Names that stand for types, such as `int` in `type(x) == int`."""
    simple = ("bool", "bytes", "double", "int", "string", "uint", "type", "dyn")
    known = {name: parse_type(name) for name in (*simple, *types.STRUCTS, "net.IP", "net.CIDR")}
    return known | {
        "null_type": types.NULL,
        "list": types.list_of(types.DYN),
        "map": types.map_of(types.DYN, types.DYN),
        "optional_type": types.optional_of(types.DYN),
        "google.protobuf.Duration": types.DURATION,
        "google.protobuf.Timestamp": types.TIMESTAMP,
    }


@dataclass(frozen=True, slots=True)
class Environment:
    """`variables` by name. `structs` are types that expressions may construct by their names.

    Upstream offers `jsonpatch` only to mutating policies, and `cel.bind` only to selectors of devices.
    """

    variables: Mapping[str, CelType]
    structs: Mapping[str, CelType] = field(default_factory=dict)
    with_json_patch: bool = False
    with_bind: bool = False

    def overloads(self, name: str) -> tuple[Overload, ...] | None:
        if name.startswith("jsonpatch.") and not self.with_json_patch:
            return None
        return functions().get(name.removeprefix("."))

    def type_named(self, name: str) -> CelType | None:
        return self.structs.get(name) or named_types().get(name)
