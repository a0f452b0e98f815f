"""Creates the strategic merge patch from one object to another.

Controllers send changes as such patches: only differences are sent, and list elements that other writers added are
kept. `strategic_merge_patch(old, create_two_way_merge_patch(old, new))` equals `new`, except for the order of merged
lists, which `$setElementOrder` preserves.
"""

from __future__ import annotations

from typing import Any

from podlife.api.patch.errors import go_format
from podlife.api.patch.fields import (
    Treatment,
    are_objects,
    key_of,
    list_treatment,
    object_treatment,
    same_value,
    type_key,
)

Map = dict[str, Any]


def create_two_way_merge_patch(old: Map, new: Map, api_version: str, kind: str) -> Map:
    """The patch; empty if the objects are equal. It may share parts with `new`. Raises PatchError."""
    return _object_diff(old, new, type_key(api_version, kind))


def _object_diff(old: Map, new: Map, kind: str, *, retains_keys: bool = False) -> Map:
    patch: Map = {}
    for name, value in new.items():
        if name not in old:
            patch[name] = value
            continue
        current = old[name]
        if type(current) is not type(value):
            patch[name] = value
        elif isinstance(value, dict):
            _add_object_diff(patch, name, current, value, kind)
        elif isinstance(value, list):
            _add_list_diff(patch, name, current, value, kind)
        elif current != value:
            patch[name] = value
    patch.update(dict.fromkeys(name for name in old if name not in new))
    names = [name for name, value in new.items() if value is not None]
    if retains_keys and names and patch:
        patch["$retainKeys"] = sorted(names)
    return patch


def _add_object_diff(patch: Map, name: str, old: Map, new: Map, kind: str) -> None:
    if old == new:
        return
    treatment = object_treatment(kind, name)
    if treatment.strategy == "replace":
        patch[name] = new
    elif changes := _object_diff(old, new, treatment.type, retains_keys=treatment.retains_keys):
        patch[name] = changes


def _add_list_diff(patch: Map, name: str, old: list[Any], new: list[Any], kind: str) -> None:
    if old == new:
        return
    element = list_treatment(kind, name)
    if element.strategy != "merge" or not old:
        patch[name] = new
    elif are_objects(old, new):
        _add_elements_diff(patch, name, old, new, element)
    else:
        _add_scalars_diff(patch, name, old, new)


def _add_elements_diff(patch: Map, name: str, old: list[Any], new: list[Any], element: Treatment) -> None:
    merge_key = element.merge_key
    current = {key_of(item, merge_key): item for item in old}
    wanted = {key_of(item, merge_key) for item in new}
    changes: list[Any] = []
    for item in new:
        before = current.get(key_of(item, merge_key))
        if before is None:
            changes.append(item)
        elif diff := _object_diff(before, item, element.type, retains_keys=element.retains_keys):
            changes.append({**diff, merge_key: item[merge_key]})
    gone = sorted(
        (item for key, item in current.items() if key not in wanted),
        key=lambda item: go_format(item[merge_key]),
    )
    changes += [{"$patch": "delete", merge_key: item[merge_key]} for item in gone]
    if changes:
        patch[name] = changes
    patch[f"$setElementOrder/{name}"] = [{merge_key: item[merge_key]} for item in new]
    if not new:
        del patch[f"$setElementOrder/{name}"]


def _add_scalars_diff(patch: Map, name: str, old: list[Any], new: list[Any]) -> None:
    before, after = {same_value(value) for value in old}, {same_value(value) for value in new}
    if added := [value for value in new if same_value(value) not in before]:
        patch[name] = added
    gone = dict.fromkeys(value for value in old if same_value(value) not in after)
    if gone:
        patch[f"$deleteFromPrimitiveList/{name}"] = sorted(gone, key=go_format)
    if new:
        patch[f"$setElementOrder/{name}"] = new
