"""What a schema in a custom resource definition may use of OpenAPI, and how the Kubernetes extensions go together.

The counterpart of `structure`: rules that concern each schema in itself, with the messages of kube-apiserver.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from podlife.api.field_errors import FieldErrors, bad_value, forbidden, not_supported, required
from podlife.api.structural.field_paths import find_field
from podlife.api.structural.props import Props, subschemas

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_IS_KEY = "this property is in x-kubernetes-list-map-keys"
_LINE_BREAK = re.compile(r"[\n\r]")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema is: defaults are forbidden in the metadata of the root."""

    is_root: bool = False
    in_metadata: bool = False
    # Why defaults are forbidden here; empty if they are not.
    no_defaults: str = ""


def check_openapi(props: Props, path: str) -> FieldErrors:
    """The errors of a whole schema."""
    yield from _check(props, path, _Place(is_root=True))


def _check(props: Props, path: str, place: _Place) -> FieldErrors:
    yield from _unsupported(props, path, place)
    if props.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", detail)
    if props.get("properties") and props.get("additionalProperties", True) is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", detail)
    for inner, at in subschemas(props, path):
        yield from _check(inner, at, _place_of(props, path, at, place))
    if props.get("x-kubernetes-preserve-unknown-fields") is False:
        yield bad_value(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type(props, path)
    yield from _list_type(props, path)
    for index, rule in enumerate(props.get("x-kubernetes-validations", ())):
        yield from _rule(rule, props, f"{path}.x-kubernetes-validations[{index}]")


def _place_of(props: Props, path: str, at: str, place: _Place) -> _Place:
    below = replace(place, is_root=False)
    if at == f"{path}.additionalProperties" and place.in_metadata:
        return replace(below, no_defaults="inside additionalProperties applying to object metadata")
    name = at.removeprefix(f"{path}.properties[").removesuffix("]")
    if name in _META and at != name and (place.is_root or props.get("x-kubernetes-embedded-resource")):
        below = replace(below, in_metadata=True)
        if place.is_root:
            below = replace(below, no_defaults=f"in top-level {name}")
    return below


def _unsupported(props: Props, path: str, place: _Place) -> FieldErrors:
    kind = props.get("type", "")
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if "default" in props and place.no_defaults:
        yield forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    if props.get("id"):
        yield forbidden(f"{path}.id", "id is not supported")
    for field in ("additionalItems", "patternProperties", "definitions", "dependencies", "$ref"):
        if field in props:
            yield forbidden(f"{path}.{field}", f"{field} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    # An empty list counts as no items.
    if isinstance(items := props.get("items"), list) and items:
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.in_metadata and props.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")


def _needs_type(props: Props, path: str, wanted: str, extension: str) -> FieldErrors:
    kind = props.get("type", "")
    if kind != wanted:
        detail = f"must be {wanted} if {extension} is specified"
        yield bad_value(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)


def _map_type(props: Props, path: str) -> FieldErrors:
    map_type = props.get("x-kubernetes-map-type")
    if map_type is None:
        return
    yield from _needs_type(props, path, "object", "x-kubernetes-map-type")
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _list_type(props: Props, path: str) -> FieldErrors:
    list_type: str | None = props.get("x-kubernetes-list-type")
    items = props.get("items")
    if list_type is not None:
        yield from _needs_type(props, path, "array", "x-kubernetes-list-type")
        if props.get("type") == "array" and list_type == "set" and isinstance(items, dict):
            yield from _set_items(items, path)
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    keys = props.get("x-kubernetes-list-map-keys", [])
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        at = f"{path}.x-kubernetes-list-type"
        yield required(at, detail) if list_type is None else bad_value(at, list_type, detail)
    if list_type == "map":
        yield from _map_list(items, keys, path)
    if list_type in ("set", "map") and isinstance(items, dict):
        yield from _key_rules(list_type, items, keys, path)


def _set_items(items: Props, path: str) -> FieldErrors:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    kind, list_type = items.get("type"), items.get("x-kubernetes-list-type")
    if kind == "array" and list_type not in (None, "atomic"):
        yield bad_value(f"{path}.items.x-kubernetes-list-type", list_type, detail)
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        # Upstream shows the list type here.
        yield bad_value(f"{path}.items.x-kubernetes-map-type", list_type, detail)


def _map_list(items: Any, keys: list[str], path: str) -> FieldErrors:
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.x-kubernetes-list-map-keys", detail)
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if isinstance(items, list):
        yield bad_value(
            f"{path}.items", items, "must only have a single schema if x-kubernetes-list-type is map"
        )
        return
    if items.get("type", "") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield bad_value(f"{path}.items.type", items.get("type", ""), detail)
        return
    at = f"{path}.x-kubernetes-list-map-keys"
    seen: set[str] = set()
    for key in keys:
        found = items.get("properties", {}).get(key)
        if found is None:
            yield bad_value(at, keys, "entries must all be names of item properties")
        elif found.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield bad_value(f"{path}.items.properties[{key}].type", "object", detail)
        if key in seen:
            yield bad_value(at, keys, "must not contain duplicate entries")
        seen.add(key)


def _key_rules(list_type: str, items: Props, keys: list[str], path: str) -> FieldErrors:
    if items.get("nullable"):
        detail = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield forbidden(f"{path}.items.nullable", detail)
    needed = set(items.get("required", ()))
    for key in keys if list_type == "map" else ():
        found = items.get("properties", {}).get(key)
        if found is None:
            continue
        at = f"{path}.items.properties[{key}]"
        if key not in needed and "default" not in found:
            detail = f"{_IS_KEY}, so it must have a default or be a required property"
            yield required(f"{at}.default", detail)
        if found.get("nullable"):
            detail = f"{_IS_KEY}, so it cannot be nullable"
            yield forbidden(f"{at}.nullable", detail)


def _rule(rule: Props, props: Props, path: str) -> FieldErrors:
    """The texts around a validation rule; `rule_checks` compiles the rule itself."""
    message, expression = rule.get("message", ""), rule.get("messageExpression", "")
    field_path, reason = rule.get("fieldPath", ""), rule.get("reason")
    if not rule["rule"].strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield bad_value(f"{path}.message", message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        yield bad_value(f"{path}.message", message, "must not contain line breaks")
    elif _LINE_BREAK.search(rule["rule"].strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)
    if field_path and not field_path.strip():
        yield bad_value(f"{path}.fieldPath", field_path, "must be non-empty if specified")
    if _LINE_BREAK.search(field_path):
        yield bad_value(f"{path}.fieldPath", field_path, "must not contain line breaks")
    try:
        find_field(field_path, props)
    except ValueError:
        yield bad_value(f"{path}.fieldPath", field_path, "must be a valid path")
