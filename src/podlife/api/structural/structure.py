"""Whether a schema is structural: types are given outside of junctors, and junctors only restrict values.

The rules, their messages and paths are those of kube-apiserver. Errors are sorted by their text.
"""

from __future__ import annotations

from typing import Any

from podlife.api.field_errors import FieldError, FieldErrors, bad_value, forbidden, required
from podlife.api.patterns import compile_pattern
from podlife.api.structural.props import Props

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# Fields that must not be used inside of junctors, and how upstream says so.
_NOT_NESTED = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def why_not_convertible(props: Props) -> str:
    """Why the schema cannot be made structural at all; empty if it can."""
    for field, name in _UNSUPPORTED:
        if props.get(field) or (field == "additionalItems" and field in props):
            return f"OpenAPIV3Schema '{name}' is not supported"
    for junctor in ("allOf", "anyOf", "oneOf"):
        for each in props.get(junctor, ()):
            if why := why_not_convertible(each):
                return why
    if "not" in props and (why := why_not_convertible(props["not"])):
        return why
    if props.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    items = props.get("items")
    if isinstance(items, list) and items:
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    inner = [items, *props.get("properties", {}).values(), props.get("additionalProperties")]
    return next((why for each in inner if isinstance(each, dict) and (why := why_not_convertible(each))), "")


def _items(props: Props) -> Props | None:
    """The schema of the items; an empty list, which `why_not_convertible` allows, is none."""
    items = props.get("items")
    return items if isinstance(items, dict) else None


def check_structural(props: Props, path: str) -> list[FieldError]:
    """The errors of a schema that can be made structural."""
    errors = [*_invariants(props, "root", path), *_completeness(props, props, path, path)]
    return sorted(errors, key=str)


def _invariants(props: Props, level: str, path: str) -> FieldErrors:
    kind = props.get("type", "")
    items = _items(props)
    if kind == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if items is not None:
        yield from _invariants(items, "item", f"{path}.items")
    for name, each in props.get("properties", {}).items():
        yield from _invariants(each, "field", f"{path}.properties[{name}]")
    if "additionalProperties" in props:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(props["additionalProperties"], dict):
            yield from _invariants(props["additionalProperties"], "field", f"{path}.additionalProperties")
    yield from _extensions(props, path)
    any_of, all_of = props.get("anyOf", []), props.get("allOf", [])
    yield from _values(
        props, path, level, skip_any=any_of == _INT_OR_STRING, skip_all=_starts_with_int_or_string(all_of)
    )
    yield from _types(props, kind, level, path)


def _starts_with_int_or_string(all_of: list[Props]) -> bool:
    return bool(all_of) and all_of[0].get("anyOf", []) == _INT_OR_STRING


def _extensions(props: Props, path: str) -> FieldErrors:
    if props.get("x-kubernetes-int-or-string"):
        for field in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if props.get(field):
                yield bad_value(
                    f"{path}.{field}", True, "must be false if x-kubernetes-int-or-string is true"
                )


def _types(props: Props, kind: str, level: str, path: str) -> FieldErrors:
    embedded, preserve = (
        props.get(f"x-kubernetes-{name}") for name in ("embedded-resource", "preserve-unknown-fields")
    )
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield bad_value(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not props.get("x-kubernetes-int-or-string") and not preserve:
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and "additionalProperties" in props:
        yield forbidden(
            f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set"
        )
    if level == "root" and kind and kind != "object":
        yield bad_value(f"{path}.type", kind, "must be object at the root")
    properties = props.get("properties", {})
    if level == "root" or embedded:
        for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            if name in properties and properties[name].get("type", "") != wanted:
                found = properties[name].get("type", "")
                yield bad_value(f"{path}.properties[{name}].type", found, f"must be {wanted}")
    if level == "root" and "metadata" in properties and not _is_plain_metadata(properties["metadata"]):
        yield forbidden(
            f"{path}.properties[metadata]",
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        )
    if embedded and not preserve and not properties:
        yield required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )


def _is_plain_metadata(props: Props) -> bool:
    rest = {field for field in props if field not in ("type", "default", "properties")}
    return not rest and props.get("properties", {}).keys() <= {"name", "generateName"}


def _values(
    props: Props, path: str, level: str, *, skip_any: bool = False, skip_all: bool = False
) -> FieldErrors:
    if not skip_any:
        for index, each in enumerate(props.get("anyOf", ())):
            yield from _nested(each, f"{path}.anyOf[{index}]", level)
    for index, each in enumerate(props.get("allOf", ())):
        yield from _nested(each, f"{path}.allOf[{index}]", level, skip_any=skip_all and index == 0)
    for index, each in enumerate(props.get("oneOf", ())):
        yield from _nested(each, f"{path}.oneOf[{index}]", level)
    if "not" in props:
        yield from _nested(props["not"], f"{path}.not", level)
    if pattern := props.get("pattern"):
        try:
            compile_pattern(pattern)
        except ValueError as error:
            yield bad_value(
                f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}"
            )


def _nested(props: Props, path: str, level: str, *, skip_any: bool = False) -> FieldErrors:
    yield from _values(props, path, level, skip_any=skip_any)
    if (items := _items(props)) is not None:
        yield from _nested(items, f"{path}.items", level)
    for name, each in props.get("properties", {}).items():
        yield from _nested(each, f"{path}.properties[{name}]", "field")
    for field, detail in _NOT_NESTED:
        if props.get(field) or (field in props and field in ("default", "x-kubernetes-list-type")):
            yield forbidden(f"{path}.{field}", detail)
    if "metadata" in props.get("properties", {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(restriction: Props, props: Props | None, path: str, restriction_path: str) -> FieldErrors:
    """What junctors restrict must be specified outside of them."""
    nested: list[tuple[Props, str]] = [
        (each, f"{restriction_path}.{junctor}[{index}]")
        for junctor in ("allOf", "anyOf", "oneOf")
        for index, each in enumerate(restriction.get(junctor, ()))
    ]
    if "not" in restriction:
        nested.append((restriction["not"], f"{restriction_path}.not"))
    for each, at in nested:
        yield from _nested_completeness(each, props, path, at)


def _nested_completeness(
    restriction: Props, props: Props | None, path: str, restriction_path: str
) -> FieldErrors:
    if props is None:
        yield required(path, f"because it is defined in {restriction_path}")
        return
    yield from _completeness(restriction, props, path, restriction_path)
    if (items := _items(restriction)) is not None:
        yield from _nested_completeness(items, _items(props), f"{path}.items", f"{restriction_path}.items")
    specified: dict[str, Any] = props.get("properties", {})
    for name, each in restriction.get("properties", {}).items():
        where, at = f"{path}.properties[{name}]", f"{restriction_path}.properties[{name}]"
        yield from _nested_completeness(each, specified.get(name), where, at)
