"""Merging an applied object into a live one, and removing items from it. Nothing given is changed; results share
what they did not change with it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from podlife.api.fieldpath.elements import show
from podlife.api.fieldpath.field_set import FieldSet, below, is_member
from podlife.api.fieldpath.merge_type import DEDUCED, LIST, MAP, SCALAR, MergeType
from podlife.api.fieldpath.typed import TypedValueError, child_type, element_of, elements_of, is_atomic

_ABSENT: Any = object()


def merge(live: Any, applied: Any, kind: MergeType) -> Any:
    """The live value with what was applied: nothing is removed. Raises TypedValueError."""
    merged = _merge(live, applied, kind)
    return {} if merged is _ABSENT else merged


def _merge(live: Any, applied: Any, kind: MergeType) -> Any:
    if applied is _ABSENT:
        return live
    if kind.form == DEDUCED:
        mixed = not (isinstance(live, dict) and isinstance(applied, dict))
        if mixed or not (live or applied):
            return applied
    elif kind.atomic or kind.form == SCALAR or (live is _ABSENT and kind.form == MAP):
        return applied
    if (live is _ABSENT or not live) and not applied:
        # Keeps the difference between null and empty.
        return applied
    if kind.form == LIST:
        return _merge_lists([] if live is _ABSENT else live or [], applied or [], kind)
    return _merge_maps(live or {}, applied or {}, kind)


def _merge_maps(live: dict[str, Any], applied: dict[str, Any], kind: MergeType) -> Any:
    merged = dict(live)
    for name, item in applied.items():
        result = _merge(live.get(name, _ABSENT), item, child_type(kind, name))
        if result is _ABSENT:
            merged.pop(name, None)
        else:
            merged[name] = result
    return merged or _ABSENT


def _merge_lists(live: list[Any], applied: list[Any], kind: MergeType) -> Any:
    """The order is the live one where the applied list allows it: applied elements keep theirs, and live elements
    that were not applied stay where they are between them."""
    theirs = _applied_elements(applied, kind)
    mine = elements_of(live, kind)
    # A live element that is there twice cannot be merged: the applied one replaces it.
    present = Counter(mine)
    known = {element: item for element, item in zip(mine, live, strict=True) if present[element] == 1}
    shared = [element for element in theirs if element in present]
    assert kind.element is not None
    order = list(theirs)
    done: set[str] = set()
    out: list[Any] = []
    at = taken = next_shared = 0

    def take(element: str) -> None:
        done.add(element)
        merged = _merge(known.get(element, _ABSENT), theirs[element], kind.element or kind)
        if merged is not _ABSENT:
            out.append(merged)

    while at < len(mine) or taken < len(order):
        if at < len(mine) and taken < len(order):
            if mine[at] == order[taken]:
                take(mine[at])
                at, taken, next_shared = at + 1, taken + 1, next_shared + 1
                continue
            awaited = shared[next_shared] if next_shared < len(shared) else None
            if mine[at] in theirs and awaited is not None and awaited != mine[at]:
                # It is applied too, but not next: taken in the order of the applied list.
                at += 1
                continue
        if at < len(mine):
            if mine[at] not in theirs:
                out.append(live[at])
                at += 1
                continue
            if mine[at] in done:
                at += 1
        if taken < len(order):
            element = order[taken]
            take(element)
            taken += 1
            if next_shared < len(shared) and shared[next_shared] == element:
                next_shared += 1
    return out or _ABSENT


def _applied_elements(applied: list[Any], kind: MergeType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in applied:
        element = element_of(item, kind)
        if element in found:
            raise TypedValueError(f"duplicate entries for key {show(element)}")
        found[element] = item
    return found


def remove_items(value: Any, fields: FieldSet, kind: MergeType) -> Any:
    """The value without these items of maps and lists. A container whose last item goes becomes null."""
    if isinstance(value, dict) and kind.form != LIST:
        return _without_items_of_map(value, fields, kind) if value and not is_atomic(value, kind) else None
    if isinstance(value, list) and kind.form == LIST:
        return _without_items_of_list(value, fields, kind) if value and not kind.atomic else None
    return value


def _without_items_of_map(value: dict[str, Any], fields: FieldSet, kind: MergeType) -> Any:
    left: dict[str, Any] = {}
    for name, item in value.items():
        node = fields.get("f:" + name)
        if node is None:
            left[name] = item
        elif not is_member(node):
            left[name] = remove_items(item, below(fields, "f:" + name), child_type(kind, name))
    return left or None


def _without_items_of_list(value: list[Any], fields: FieldSet, kind: MergeType) -> Any:
    assert kind.element is not None
    left: list[Any] = []
    for item in value:
        element = element_of(item, kind)
        node = fields.get(element)
        if node is None:
            left.append(item)
        elif not is_member(node):
            left.append(remove_items(item, below(fields, element), kind.element))
    return left or None
