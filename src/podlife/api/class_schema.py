"""The structural schema of a class.

msgspec's own JSON Schema has references, numeric exclusive bounds, unions with null and tuples, none of which a
structural schema may have, and its errors name no field. This walks the same type information instead.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
from msgspec import inspect as types

from podlife.api.codec import plain
from podlife.api.structural import Props, check_schema, decode_props, find_field
from podlife.errors import ConfigError

_PRESERVE: Props = {"x-kubernetes-preserve-unknown-fields": True}
_ROOT = "openAPIV3Schema"
_SCALARS: dict[type[types.Type], Props] = {
    types.AnyType: _PRESERVE,
    types.RawType: _PRESERVE,
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.StrType: {"type": "string"},
    types.DateTimeType: {"type": "string", "format": "date-time"},
    types.DateType: {"type": "string", "format": "date"},
    types.UUIDType: {"type": "string", "format": "uuid"},
}
# Members of msgspec's types, and the keywords they become.
_TEXT_BOUNDS = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
_NUMBER_BOUNDS = {
    "ge": "minimum",
    "gt": "minimum",
    "le": "maximum",
    "lt": "maximum",
    "multiple_of": "multipleOf",
}
_LIST_BOUNDS = {"min_length": "minItems", "max_length": "maxItems"}
_MAP_BOUNDS = {"min_length": "minProperties", "max_length": "maxProperties"}
_CHOICES = {str: "string", int: "integer"}
_Object = types.StructType | types.DataclassType | types.TypedDictType


def schema_of(cls: type, extra: Props) -> Props:
    """The schema of a custom resource's class, with `extra` at its root. Raises ConfigError."""
    try:
        info = types.type_info(cls)
    except (TypeError, NameError) as error:
        raise ConfigError(f"{cls.__name__}: {' '.join(str(error).split())}") from None
    walk = _Walk()
    schema = {**walk.convert(info, cls.__name__, _ROOT), **extra}
    fields: dict[str, Props] = schema["properties"]
    if "metadata" not in fields:
        raise ConfigError(f"{cls.__name__}: a custom resource needs a field `metadata: Metadata`")
    # The server has its own schema of these.
    fields.update(
        {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    )
    # A status that has never been written is absent.
    fields.get("status", {}).pop("default", None)
    for mistake in check_schema(decode_props(schema, _ROOT)[0], _ROOT):
        # Errors in rules have several lines.
        raise ConfigError(f"{walk.place(mistake.path)}: {' '.join(mistake.text.split())}")
    return schema


def find_property(cls: type, schema: Props, path: str) -> Props:
    """The schema of a field; that of text for a path into lists or metadata. Raises ConfigError."""
    if "[" in path or path.startswith(".metadata."):
        return {"type": "string", "format": "date-time" if path.endswith("Timestamp") else ""}
    try:
        return find_field(path, schema, with_brackets=False)[1]
    except ValueError as error:
        raise ConfigError(f"{cls.__name__}: invalid path {path!r}: {error}") from None


def _bounds(info: types.Type, names: dict[str, str]) -> Props:
    return {keyword: bound for name, keyword in names.items() if (bound := getattr(info, name)) is not None}


class _Walk:
    """`where` names the class and the field in messages, `path` is the place in the schema."""

    def __init__(self) -> None:
        self._open: list[type] = []
        self._places: dict[str, str] = {}

    def place(self, path: str) -> str:
        """The class and field that this part of the schema comes from."""
        return self._places[max((each for each in self._places if path.startswith(each)), key=len)]

    def convert(self, info: types.Type, where: str, path: str) -> Props:
        self._places[path] = where
        extra: Props = {}
        while isinstance(info, types.Metadata):
            extra = {**(info.extra_json_schema or {}), **extra}
            info = info.type
        try:
            _, unknown = decode_props(extra, "schema")
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None
        for text in unknown:
            raise ConfigError(f"{where}: {text}")
        return {**self._convert(info, where, path), **extra}

    def _convert(self, info: types.Type, where: str, path: str) -> Props:
        match info:
            case types.UnionType():
                return self._union(info, where, path)
            case types.LiteralType(values=values):
                return _choice(values, where)
            case types.EnumType(cls=cls):
                return {**_described(cls), **_choice([each.value for each in cls], where)}
            case types.CollectionType(item_type=item):
                is_set = isinstance(info, types.SetType | types.FrozenSetType)
                unique = {"x-kubernetes-list-type": "set"} if is_set else {}
                items = self.convert(item, where, f"{path}.items")
                return {"type": "array", "items": items, **unique, **_bounds(info, _LIST_BOUNDS)}
            case types.DictType(key_type=types.StrType() as key, value_type=value) if key == types.StrType():
                inner = self.convert(value, where, f"{path}.additionalProperties")
                inner = inner if inner == _PRESERVE else {"additionalProperties": inner}
                return {"type": "object", **inner, **_bounds(info, _MAP_BOUNDS)}
            case types.StructType() | types.DataclassType() | types.TypedDictType():
                return self._object(info, where, path)
            case types.StrType():
                return {**_SCALARS[types.StrType], **_bounds(info, _TEXT_BOUNDS)}
            case types.IntType() | types.FloatType():
                limits = {"gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
                exclusive = dict.fromkeys(_bounds(info, limits), True)
                return {**_SCALARS[type(info)], **_bounds(info, _NUMBER_BOUNDS), **exclusive}
        if type(info) not in _SCALARS:
            shown = getattr(getattr(info, "cls", None), "__name__", type(info).__name__.removesuffix("Type"))
            raise _unsupported(where, f"the type {shown}")
        return dict(_SCALARS[type(info)])

    def _union(self, union: types.UnionType, where: str, path: str) -> Props:
        members = [each for each in union.types if not isinstance(each, types.NoneType)]
        schemas = [self.convert(each, where, path) for each in members]
        merged = {name: each for schema in schemas for name, each in schema.items()}
        kinds = {schema.get("type", "") for schema in schemas}
        if kinds == {"integer", "string"} and not {"enum", "format"} & merged.keys():
            del merged["type"]
            merged["x-kubernetes-int-or-string"] = True
        elif kinds == {"integer", "number"}:
            merged["type"] = "number"
        elif len(schemas) > 1:
            raise _unsupported(where, "a union other than with None, int | str and int | float")
        # A server refuses null for every enum.
        is_nullable = len(members) < len(union.types) and "enum" not in merged
        return {**merged, "nullable": True} if is_nullable else merged

    def _object(self, info: _Object, where: str, path: str) -> Props:
        cls = getattr(info.cls, "__origin__", info.cls)
        if cls in self._open:
            raise _unsupported(where, f"a class inside itself ({cls.__name__})")
        for setting in ("array_like", "tag_field", "forbid_unknown_fields"):
            if getattr(info, setting, None) not in (None, False):
                raise _unsupported(where, f"{setting} of {cls.__name__}")
        self._open.append(cls)
        fields = {
            each.encode_name: self._field(each, f"{cls.__name__}.{each.name}", path) for each in info.fields
        }
        self._open.pop()
        # The server fills in metadata itself.
        required = [
            each.encode_name
            for each in info.fields
            if each.required and (path, each.name) != (_ROOT, "metadata")
        ]
        schema: Props = {**_described(cls), "type": "object", "properties": fields}
        return {**schema, "required": required} if required else schema

    def _field(self, field: types.Field, where: str, path: str) -> Props:
        schema = self.convert(field.type, where, f"{path}.properties[{field.encode_name}]")
        if field.required:
            return schema
        # A server drops null where it is not allowed: to the class, null and absent are the same.
        schema.pop("nullable", None)
        # A factory other than a class may return something else every time.
        factory = field.default_factory
        made = (
            factory() if isinstance(factory, type) and issubclass(factory, msgspec.Struct) else field.default
        )
        value: Any = None if made in (msgspec.NODEFAULT, msgspec.UNSET) else plain(made)
        if isinstance(made, msgspec.Struct):
            # The server fills in the defaults inside.
            inner = {name: each.get("default") for name, each in schema["properties"].items()}
            absent = {name: ([], {}) if default is None else (default,) for name, default in inner.items()}
            value = {name: each for name, each in value.items() if each not in absent[name]}
        elif value in (None, [], {}):
            # To the class, empty and absent are the same.
            return schema
        return {**schema, "default": value}


def _described(cls: type) -> Props:
    doc = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    # The docstring that a dataclass makes itself says nothing.
    return {"description": doc} if doc and not doc.startswith(f"{cls.__name__}(") else {}


def _choice(values: Any, where: str) -> Props:
    """Of a Literal or an Enum."""
    given = [each for each in values if each is not None]
    kinds = {_CHOICES.get(type(each), "") for each in given}
    if len(kinds) != 1 or "" in kinds:
        raise _unsupported(where, "a choice of values other than only str or only int")
    return {"type": kinds.pop(), "enum": given}


def _unsupported(where: str, what: str) -> ConfigError:
    return ConfigError(
        f"{where}: a CustomResourceDefinition cannot express {what}; declare another type, or Any"
    )
