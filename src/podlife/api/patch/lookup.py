"""How a strategic patch treats each field: the part of the table that patches ask."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from podlife.api.patch.errors import PatchError, malformed
from podlife.api.schema import Field, type_named, type_of_kind
from podlife.memory import CACHED_VALUES


class Treatment(NamedTuple):
    """`type` is that of the value (for a list: of its elements), in the table's notation."""

    type: str
    strategy: str = ""
    merge_key: str = ""
    retains_keys: bool = False


def root(api_version: str, kind: str) -> str:
    """The type of a kind. Raises PatchError when the kind is not known."""
    found = type_of_kind(api_version, kind)
    if found is None:
        raise PatchError(
            f'no strategic merge patch for kind "{kind}" in version "{api_version}"',
            code=415,
            reason="UnsupportedMediaType",
        )
    return "@" + found.key


@lru_cache(maxsize=CACHED_VALUES)
def for_object(parent: str, name: str) -> Treatment:
    """How a field that holds an object is patched."""
    return _treatment(_field(parent, name))


@lru_cache(maxsize=CACHED_VALUES)
def for_list(parent: str, name: str) -> Treatment:
    """How a field that holds a list is patched."""
    treatment = _treatment(_field(parent, name))
    if not treatment.type.startswith("["):
        raise malformed("expected slice or array type, but got: struct")
    return treatment._replace(type=treatment.type[1:])


def _treatment(field: Field) -> Treatment:
    strategies = [name for name in field.strategy.split(",") if name]
    retains = "retainKeys" in strategies
    rest = [name for name in strategies if name != "retainKeys"]
    return Treatment(field.type, rest[0] if rest else "", field.merge_key, retains)


def _field(parent: str, name: str) -> Field:
    if not parent.startswith("@"):
        shown = "map" if parent.startswith("{") else "struct"
        raise malformed(f"merging an object in json but data type is not struct, instead is: {shown}")
    kind = type_named(parent[1:])
    if found := kind.fields.get(name):
        return found
    # Upstream looks again without regard to case.
    folded = name.casefold()
    for field in kind.fields.values():
        if field.name.casefold() == folded:
            return field
    raise malformed(f'unable to find api field in struct {kind.name} for the json field "{name}"')
