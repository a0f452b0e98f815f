"""How values merge: the schema of server-side apply.

Built-in kinds get theirs from the table of `podlife.api.schema`; custom kinds get theirs from their structural schema,
as the same `MergeType`. A type is made once and shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from podlife.api.schema import Field, Type, type_of_kind
from podlife.api.schema.table import type_named
from podlife.api.structural.props import FIELDS, RULE_FIELDS

SCALAR, MAP, LIST, DEDUCED = "scalar", "map", "list", "deduced"


class MergeType:
    """The type of a value.

    `form` is `SCALAR`; `MAP` for structs and maps: `fields` are the declared ones, `element` is the type of all other
    keys, if there may be any; `LIST`; or `DEDUCED` for values of any type, whose maps are merged by their keys and
    whose lists are merged as a whole. `atomic` maps and lists are merged as a whole. A list that is not atomic is a
    set, or has `keys` that tell its elements apart; `key_defaults` are the values of absent keys."""

    __slots__ = ("atomic", "element", "fields", "form", "key_defaults", "keys", "scalar")

    def __init__(
        self,
        form: str,
        *,
        atomic: bool = False,
        fields: Mapping[str, MergeType] | None = None,
        element: MergeType | None = None,
        keys: Sequence[str] = (),
        key_defaults: Mapping[str, Any] | None = None,
        scalar: str = "",
    ) -> None:
        self.form = form
        self.atomic = atomic
        self.fields: dict[str, MergeType] = dict(fields or {})
        self.element = element
        # Elements are named by their keys in this order.
        self.keys = tuple(sorted(keys))
        self.key_defaults = dict(key_defaults or {})
        # What a scalar must be: string, numeric, boolean, any scalar, or `anything`, merged as a whole.
        self.scalar = scalar

    def of(self, name: str) -> MergeType | None:
        """The type of a field or of the value of a key; None if there may be no such field."""
        return self.fields.get(name) or self.element

    def granular(self) -> MergeType:
        """The same map, merged by its fields."""
        return MergeType(self.form, fields=self.fields, element=self.element)


DEDUCED_TYPE = MergeType(DEDUCED)
UNTYPED = MergeType(SCALAR, scalar="anything")
_ANY_SCALAR = MergeType(SCALAR)
_SCALARS = {
    "s": MergeType(SCALAR, scalar="string"),
    "b": MergeType(SCALAR, scalar="boolean"),
    "i": MergeType(SCALAR, scalar="numeric"),
    "l": MergeType(SCALAR, scalar="numeric"),
    "y": MergeType(SCALAR, scalar="string"),
    "R": UNTYPED,
}


@cache
def merge_type_of_kind(api_version: str, kind: str) -> MergeType:
    """The type of a built-in kind; raises KeyError if there is none."""
    found = type_of_kind(api_version, kind)
    if found is None:
        raise KeyError(f"{api_version} {kind}")
    merge_type = _struct(found)
    fields = {"apiVersion": _SCALARS["s"], "kind": _SCALARS["s"], **merge_type.fields}
    return MergeType(MAP, fields=fields)


_structs: dict[str, MergeType] = {}


def _struct(kind: Type) -> MergeType:
    found = _structs.get(kind.key)
    if found is None:
        # Known before its fields are: a type may contain itself.
        made = MergeType(MAP, atomic=kind.atomic)
        _structs[kind.key] = made
        made.fields |= {name: _of_field(field) for name, field in kind.fields.items()}
        found = made
    return found


def _of_field(field: Field) -> MergeType:
    found = _of(field.type, field.merge)
    return found.granular() if field.merge == "granular" and found.atomic else found


@cache
def _of(kind: str, merge: str = "") -> MergeType:
    match kind[0]:
        case "[":
            return _list(_of(kind[1:]), kind[1:], merge)
        case "{":
            return MergeType(MAP, atomic=merge == "atomic", element=_of(kind[1:]))
        case "@":
            return _struct(type_named(kind[1:]))
        case "P":
            return _schema_type()
    return _SCALARS.get(kind, _ANY_SCALAR)


@cache
def _schema_type() -> MergeType:
    """The type of a schema in a definition, which contains itself."""
    made = MergeType(MAP)
    kinds = {
        "s": _SCALARS["s"],
        "b": _SCALARS["b"],
        "l": _SCALARS["i"],
        "f": _SCALARS["i"],
        "S": made,
        "[s": MergeType(LIST, atomic=True, element=_SCALARS["s"]),
        "[j": MergeType(LIST, atomic=True, element=UNTYPED),
        "[S": MergeType(LIST, atomic=True, element=made),
        "{S": MergeType(MAP, element=made),
        "dependencies": MergeType(MAP, element=UNTYPED),
        "externalDocs": MergeType(MAP, fields=dict.fromkeys(("description", "url"), _SCALARS["s"])),
    }
    rule = MergeType(MAP, fields={name: kinds[kind] for name, kind in RULE_FIELDS.items()})
    kinds["rules"] = MergeType(LIST, element=rule, keys=("rule",))
    made.fields |= {name: kinds.get(kind, UNTYPED) for name, kind in FIELDS.items()}
    return made


def _list(element: MergeType, kind: str, merge: str) -> MergeType:
    if not merge:
        return MergeType(LIST, atomic=True, element=element)
    keys = merge.removeprefix("map:").split(",") if merge != "set" else ()
    fields = type_named(kind[1:]).fields if keys else {}
    defaults = {name: fields[name].key_default for name in keys if fields[name].key_default is not None}
    return MergeType(LIST, element=element, keys=keys, key_defaults=defaults)


def merge_type_of_props(props: Mapping[str, Any]) -> MergeType:
    """The type of a custom kind, from the structural schema of one of its versions (JSONSchemaProps)."""
    return _map_of_props(MAP, props, preserves=_preserves(props), is_resource=True)


def _preserves(props: Mapping[str, Any]) -> bool:
    return bool(props.get("x-kubernetes-preserve-unknown-fields"))


def _of_props(props: Mapping[str, Any], *, preserves: bool) -> MergeType:
    """`preserves` says that unknown fields are kept: this holds for everything below the schema that says so."""
    preserves = preserves or _preserves(props)
    match props.get("type") or "":
        case "array":
            return _list_of_props(props, preserves=preserves)
        case "string":
            return _SCALARS["s"] if props.get("format", "") in ("", "byte") else _ANY_SCALAR
        case "boolean":
            return _SCALARS["b"]
        case "integer" | "number":
            return _SCALARS["i"]
        case "object":
            is_resource = bool(props.get("x-kubernetes-embedded-resource"))
            return _map_of_props(MAP, props, preserves=preserves, is_resource=is_resource)
    # An integer or a string, or anything.
    return _map_of_props(DEDUCED, props, preserves=preserves) if props.get("properties") else DEDUCED_TYPE


def _map_of_props(
    form: str, props: Mapping[str, Any], *, preserves: bool, is_resource: bool = False
) -> MergeType:
    fields = {
        name: _of_props(each, preserves=preserves) for name, each in props.get("properties", {}).items()
    }
    if is_resource:
        metadata = _struct(type_named("meta.ObjectMeta"))
        fields |= {"apiVersion": _SCALARS["s"], "kind": _SCALARS["s"], "metadata": metadata}
    additional = props.get("additionalProperties")
    element = None
    if isinstance(additional, dict):
        element = _of_props(additional, preserves=preserves)
    elif additional or (additional is None and (preserves or not fields)):
        element = DEDUCED_TYPE
    atomic = props.get("x-kubernetes-map-type") == "atomic"
    return MergeType(form, atomic=atomic, fields=fields, element=element)


def _list_of_props(props: Mapping[str, Any], *, preserves: bool) -> MergeType:
    items = props.get("items")
    element = UNTYPED if items is None else _of_props(items, preserves=preserves)
    list_type = props.get("x-kubernetes-list-type")
    if list_type not in ("set", "map"):
        return MergeType(LIST, atomic=True, element=element)
    keys = props.get("x-kubernetes-list-map-keys", ()) if list_type == "map" else ()
    fields = (items or {}).get("properties", {})
    defaults = {key: fields[key]["default"] for key in keys if fields.get(key, {}).get("default") is not None}
    return MergeType(LIST, element=element, keys=keys, key_defaults=defaults)


@cache
def zero_object(api_version: str, kind: str) -> dict[str, Any]:
    """A new object of the kind as Go writes it: the fields that are written even if they are unset."""
    found = type_of_kind(api_version, kind)
    return {} if found is None else _zero(found)


_ZEROS = {"s": "", "b": False, "i": 0, "l": 0, "Q": "0", "I": 0}


def _zero(kind: Type) -> dict[str, Any]:
    return {
        name: _zero(type_named(field.type[1:])) if field.type[0] == "@" else _ZEROS.get(field.type[0])
        for name, field in kind.fields.items()
        if field.keep and not field.pointer
    }
