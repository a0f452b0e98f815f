"""Values with a type: their elements, their checks, and the fields that they mention."""

from __future__ import annotations

from typing import Any

from podlife.api.excerpt import excerpt
from podlife.api.fieldpath.elements import SELF, go_json, key_element, named_element, show, value_element
from podlife.api.fieldpath.field_set import FieldSet
from podlife.api.fieldpath.merge_type import DEDUCED, DEDUCED_TYPE, LIST, MAP, SCALAR, MergeType
from podlife.api.patch import go_format
from podlife.errors import PodlifeError

_MOST_ERRORS = 50


class TypedValueError(PodlifeError, ValueError):
    """A value does not have the shape of its type. The text is upstream's."""


def is_atomic(value: Any, kind: MergeType) -> bool:
    """Whether the value is merged as a whole."""
    if kind.form == DEDUCED:
        return not isinstance(value, dict)
    return kind.atomic or kind.form == SCALAR


def child_type(kind: MergeType, name: str) -> MergeType:
    """The type of a member of a map, or of a value whose type is deduced."""
    return kind.fields.get(name) or kind.element or DEDUCED_TYPE


def element_of(item: Any, kind: MergeType) -> str:
    """The path element of a list's element; raises TypedValueError."""
    keys = kind.keys
    if not keys:
        return _set_element(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise TypedValueError(f"associative list with keys may not have {what}")
    if len(keys) == 1:
        # Nearly all lists: named by one text.
        name = item.get(keys[0])
        if type(name) is str:
            return named_element(keys[0], name)
    found = {}
    for key in keys:
        if key in item:
            found[key] = item[key]
        elif key in kind.key_defaults:
            found[key] = kind.key_defaults[key]
    if not found:
        listed = " ".join(f'"{key}"' for key in keys)
        raise TypedValueError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(found)


def _set_element(item: Any) -> str:
    if isinstance(item, dict):
        raise TypedValueError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise TypedValueError("not supported: associative list with lists as elements")
    if item is None:
        raise TypedValueError("associative list without keys has an element that's an explicit null")
    return value_element(item)


def elements_of(items: list[Any], kind: MergeType) -> list[str]:
    """The elements of a list, in its order; raises TypedValueError."""
    return [element_of(item, kind) for item in items]


# Where a value is: the place around it, and its name or list element. A text is made only for an error.
_Place = tuple[Any, str] | None


def check_typed(value: Any, kind: MergeType, *, may_repeat: bool = False) -> None:
    """Raise TypedValueError if the value does not fit its type: unknown fields, wrong types, and duplicates unless
    `may_repeat`."""
    errors: list[str] = []
    _check(value, kind, None, errors, may_repeat=may_repeat)
    if len(errors) == 1:
        raise TypedValueError(errors[0])
    if errors:
        raise TypedValueError("\n  ".join(["errors:", *errors]))


def _check(value: Any, kind: MergeType, place: _Place, errors: list[str], *, may_repeat: bool) -> None:
    if value is None or kind.scalar == "anything" or len(errors) >= _MOST_ERRORS:
        return
    problem = None
    if kind.form == DEDUCED:
        if kind.fields and isinstance(value, dict):
            _check_map(value, kind, place, errors, may_repeat=may_repeat)
    elif kind.form == MAP:
        if isinstance(value, dict):
            _check_map(value, kind, place, errors, may_repeat=may_repeat)
        else:
            problem = f"expected map, got {_shown(value)}"
    elif kind.form == LIST:
        if isinstance(value, list):
            _check_list(value, kind, place, errors, may_repeat=may_repeat)
        else:
            problem = f"expected list, got {_shown(value)}"
    else:
        problem = _why_not_scalar(value, kind.scalar)
    if problem:
        errors.append(f"{_path(place)}: {problem}" if place else problem)


def _check_map(
    value: dict[str, Any], kind: MergeType, place: _Place, errors: list[str], *, may_repeat: bool
) -> None:
    for name, item in value.items():
        found = kind.of(name)
        if found is None:
            # Upstream stops at the first unknown field of a struct.
            errors.append(f"{_path(place)}.{name}: field not declared in schema")
            return
        if item is not None and (found.form != SCALAR or _why_not_scalar(item, found.scalar)):
            _check(item, found, (place, f"f:{name}"), errors, may_repeat=may_repeat)


def _check_list(
    value: list[Any], kind: MergeType, place: _Place, errors: list[str], *, may_repeat: bool
) -> None:
    assert kind.element is not None
    seen = set()
    for index, item in enumerate(value):
        if kind.atomic:
            element = f"i:{index}"
        else:
            try:
                element = element_of(item, kind)
            except TypedValueError as error:
                errors.append(f"{_path(place)}: element {index}: {error}")
                return
            if element in seen and not may_repeat:
                errors.append(f"{_path(place)}: duplicate entries for key {show(element)}")
            seen.add(element)
        _check(item, kind.element, (place, element), errors, may_repeat=may_repeat)


def _path(place: _Place) -> str:
    text = ""
    while place:
        place, element = place
        text = show(element) + text
    return text


def _shown(value: Any) -> str:
    """As Go prints the value that its library wraps."""
    return f"&{{{excerpt(go_format(value), 1024)}}}"


def _go_syntax(value: Any) -> str:
    """As Go prints the value in its own syntax (`%#v`)."""
    if isinstance(value, dict):
        members = (f"{go_json(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"{_go_type(value)}{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"{_go_type(value)}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else go_json(value)


def _go_type(value: Any) -> str:
    if isinstance(value, dict | list):
        return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"
    return {str: "string", bool: "bool", int: "int64", float: "float64"}[type(value)]


def _why_not_scalar(value: Any, scalar: str) -> str | None:
    match scalar:
        case "numeric":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return f"expected numeric (int or float), got {_go_type(value)}"
        case "string":
            if not isinstance(value, str):
                shown = excerpt(_go_syntax(value), 1024)
                return f"expected string, got &value.valueUnstructured{{Value:{shown}}}"
        case "boolean":
            if not isinstance(value, bool):
                return f"expected boolean, got {_shown(value)}"
        case _:
            if isinstance(value, dict | list):
                return f"expected any scalar, got {_shown(value)}"
    return None


def field_set_of(value: Any, kind: MergeType) -> FieldSet:
    """The fields that an applied object mentions: leaves, keys of maps and elements of lists. Raises
    TypedValueError."""
    if isinstance(value, list):
        return _fields_of_list(value, kind)
    return _fields_of_map(value, kind) if isinstance(value, dict) else {}


def _fields_of_map(value: dict[str, Any], kind: MergeType) -> FieldSet:
    found: FieldSet = {}
    for name, item in value.items():
        of = child_type(kind, name)
        if of.form == SCALAR or is_atomic(item, of):
            found["f:" + name] = {}
            continue
        children = field_set_of(item, of)
        member = item is None or item == {} or name not in kind.fields
        if member:
            found["f:" + name] = {SELF: {}, **children} if children else {}
        elif children:
            found["f:" + name] = children
    return found


def _fields_of_list(value: list[Any], kind: MergeType) -> FieldSet:
    found: FieldSet = {}
    duplicates = set()
    assert kind.element is not None
    for item in value:
        element = element_of(item, kind)
        if element in found:
            duplicates.add(element)
            continue
        children = {} if is_atomic(item, kind.element) else field_set_of(item, kind.element)
        found[element] = {SELF: {}, **children} if children else {}
    for element in duplicates:
        # Elements of the same name are owned as one.
        found[element] = {}
    return found


def with_named_fields(fields: FieldSet, kind: MergeType | None) -> FieldSet:
    """The set, and every declared field above a member: removing all of a struct's fields removes the struct."""
    found: FieldSet = {}
    for element, node in fields.items():
        if not node or element == SELF:
            found[element] = node
            continue
        below: MergeType | None = None
        named = False
        if element[0] == "f" and kind is not None and kind.form in (MAP, DEDUCED):
            name = element[2:]
            named = name in kind.fields
            below = child_type(kind, name)
        elif element[0] == "k" and kind is not None and kind.form == LIST:
            below = kind.element
        children = with_named_fields(node, below)
        found[element] = {SELF: {}, **children} if named and SELF not in children else children
    return found
