"""Strategic merge patch: lists merge by the key that a field's type declares, unless a directive differs.

Directives: `$patch: replace` or `delete` in an object or a list element, `$deleteFromPrimitiveList/<field>`,
`$setElementOrder/<field>` and `$retainKeys`. Effects, errors and the order of processing are upstream's, since a patch
may have several directives for one field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podlife.api.patch.errors import PatchError, go_format, go_type_of, too_much
from podlife.api.patch.fields import (
    Key,
    Treatment,
    are_objects,
    key_of,
    list_treatment,
    merge_scalars,
    object_treatment,
    ordered,
    same_value,
    type_key,
)
from podlife.api.schema import go_kind

_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_SET_ORDER = "$setElementOrder"

_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_DELETION = "invalid patch format of primitive list"

# What Go prints for a value without a type.
_NIL = "%!s(<nil>)"

Map = dict[str, Any]

# A patch may name an element repeatedly, and each time all of it is merged.
_MOST_MERGED = 300_000


@dataclass(slots=True)
class _Effort:
    """Number of fields and elements merged so far."""

    merged: int = 0

    def spend(self, count: int) -> None:
        self.merged += count
        if self.merged > _MOST_MERGED:
            raise too_much(f"A strategic merge patch may merge at most {_MOST_MERGED} fields and elements")


def strategic_merge_patch(obj: Map, patch: Any, api_version: str, kind: str) -> Map:
    """The object with the patch merged in; it may share parts with both. Raises PatchError."""
    if patch is None:
        return dict(obj)
    if not isinstance(patch, dict):
        raise PatchError(
            f"json: cannot unmarshal {go_kind(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merge_objects(obj, patch, type_key(api_version, kind), _Effort())


def _merge_objects(original: Map, patch: Map, kind: str, effort: _Effort) -> Map:
    if _DIRECTIVE in patch:
        return _directed(patch)
    effort.spend(len(original) + len(patch))
    result, patch = dict(original), dict(patch)
    _apply_retain_keys(result, patch)
    for name in [name for name in patch if name.startswith(_SET_ORDER)]:
        _apply_order(result, patch, name, kind, effort)
    for name, value in patch.items():
        if name.startswith(_DELETE_FROM):
            _apply_deletions(result, _target(name, _DELETE_FROM, _BAD_DELETION), value, kind, effort)
        elif value is None:
            result.pop(name, None)
        else:
            _merge_field(result, name, value, kind, effort)
    return result


def _directed(patch: Map) -> Map:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(patch)


def _unknown_directive(patch: Map) -> Exception:
    return PatchError(f"unknown patch type: {go_format(patch[_DIRECTIVE])} in map: {go_format(patch)}")


def _apply_retain_keys(result: Map, patch: Map) -> None:
    if _RETAIN_KEYS not in patch:
        return
    names = patch.pop(_RETAIN_KEYS)
    if not isinstance(names, list):
        raise PatchError(_BAD_RETAIN_KEYS)
    retained = {name for name in names if isinstance(name, str)}
    for name, value in patch.items():
        if value is not None and name not in retained and not name.startswith((_DELETE_FROM, _SET_ORDER)):
            raise PatchError(_BAD_RETAIN_KEYS)
    for name in result.keys() - retained:
        del result[name]


def _target(name: str, prefix: str, complaint: str) -> str:
    """The field of a directive `$prefix/field`."""
    start, slash, field = name.partition("/")
    if start != prefix or not slash:
        raise PatchError(complaint)
    return field


def _apply_deletions(result: Map, name: str, values: Any, kind: str, effort: _Effort) -> None:
    current = result.get(name)
    if values is None:
        result.pop(name, None)
    elif isinstance(current, list) and isinstance(values, list):
        element = list_treatment(kind, name)
        if not are_objects(current, values):
            unwanted = {same_value(value) for value in values}
            result[name] = [value for value in current if same_value(value) not in unwanted]
        else:
            result[name] = _merge_elements(current, values, element, effort)


def _merge_field(result: Map, name: str, value: Any, kind: str, effort: _Effort) -> None:
    current = result.get(name)
    if isinstance(current, dict) and isinstance(value, dict):
        treatment = object_treatment(kind, name)
        replaces = treatment.strategy == "replace"
        result[name] = value if replaces else _merge_objects(current, value, treatment.type, effort)
    elif isinstance(current, list) and isinstance(value, list):
        result[name] = _merge_lists(current, value, list_treatment(kind, name), effort)
    elif _is_directed(value):
        result.pop(name, None)
    else:
        result[name] = _plain(value)


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _plain(value: Any) -> Any:
    """A value that is copied whole, without nulls and directives."""
    if isinstance(value, dict):
        return {
            name: _plain(item) for name, item in value.items() if item is not None and not _is_directed(item)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directed(item)]
    return value


def _merge_lists(current: list[Any], patch: list[Any], element: Treatment, effort: _Effort) -> list[Any]:
    if element.strategy != "merge":
        return patch
    if not current and not patch:
        return current
    return _merge_elements(current, patch, element, effort)


def _merge_elements(current: list[Any], patch: list[Any], element: Treatment, effort: _Effort) -> list[Any]:
    effort.spend(len(current) + len(patch))
    if not are_objects(current, patch):
        return ordered(merge_scalars(current, patch), patch, current, "")
    if not element.merge_key:
        shown = "struct" if element.type.startswith("@") else "string"
        raise PatchError(f"cannot merge lists without merge key for {shown}")
    current, patch = _apply_element_directives(current, patch, element.merge_key)
    merged = list(current)
    places = _places(merged, element.merge_key)
    for item in patch:
        key = key_of(item, element.merge_key)
        place = places.setdefault(key, len(merged))
        if place == len(merged):
            merged.append(item)
        else:
            merged[place] = _merge_objects(merged[place], item, element.type, effort)
    return ordered(merged, patch, current, element.merge_key)


def _apply_element_directives(
    current: list[Any], patch: list[Any], merge_key: str
) -> tuple[list[Any], list[Any]]:
    """The list without deleted elements, and the patch without directives."""
    rest, replaces = [], False
    deleted: set[Key] = set()
    for item in patch:
        if not _is_directed(item):
            rest.append(item)
        elif item[_DIRECTIVE] == "delete":
            deleted.add(key_of(item, merge_key))
        elif item[_DIRECTIVE] == "replace":
            replaces = True
        elif item[_DIRECTIVE] == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item)
    if replaces:
        return rest, []
    if deleted:
        current = [one for one in current if merge_key not in one or key_of(one, merge_key) not in deleted]
    return current, rest


def _places(elements: list[Any], merge_key: str) -> dict[Key, int]:
    """Index of the first element of each key, so that long lists cost linear time."""
    places: dict[Key, int] = {}
    for place, element in enumerate(elements):
        if merge_key in element:
            places.setdefault(key_of(element, merge_key), place)
    return places


def _apply_order(result: Map, patch: Map, directive: str, kind: str, effort: _Effort) -> None:
    """Merge the list of `$setElementOrder/<field>` and sort it in that order."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise PatchError(f"expected a []interface {{}}, but received a {go_type_of(order, _NIL)}")
    name = _target(directive, _SET_ORDER, _BAD_ORDER)
    current, changes = _as_list(result, name), _as_list(patch, name)
    element = list_treatment(kind, name)
    _check_order(changes or [], order, element.merge_key)
    if changes is None and current is None:
        return
    if changes is None:
        merged = current or []
    elif current is None:
        merged = _plain(changes)
    else:
        merged = _merge_lists(current, changes, element, effort)
    are_objects(current or [], changes or [])
    result[name] = ordered(merged, order, current or [], element.merge_key)
    patch.pop(name, None)


def _as_list(holder: Map, name: str) -> list[Any] | None:
    if name not in holder:
        return None
    if not isinstance(holder[name], list):
        raise PatchError(f"expected a []interface {{}}, but received a {go_type_of(holder[name], _NIL)}")
    found: list[Any] = holder[name]
    return found


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """The changed elements must occur in the requested order, in the same sequence."""
    if not changes or not order:
        return
    pending = [item for item in changes if not (merge_key and _is_directed(item))]
    keys = iter([key_of(item, merge_key) for item in order])
    for item in pending:
        key = key_of(item, merge_key)
        if not any(key == other for other in keys):
            raise PatchError(
                f"The order in patch list:\n{go_format(changes)}\n doesn't match {_SET_ORDER} list:\n"
                f"{go_format(order)}\n"
            )
