"""What changed between two objects, as sets of fields.

Equal parts are skipped by one comparison in C, so the cost follows the change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from podlife.api.fieldpath.elements import SELF
from podlife.api.fieldpath.field_set import FieldSet, recursive_difference, union
from podlife.api.fieldpath.merge_type import DEDUCED, DEDUCED_TYPE, LIST, SCALAR, MergeType
from podlife.api.fieldpath.typed import child_type, element_of, is_atomic


class Comparison(NamedTuple):
    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def is_same(self) -> bool:
        return not (self.added or self.modified or self.removed)

    @property
    def written(self) -> FieldSet:
        """The fields that have another value than before."""
        return union(self.modified, self.added)

    def without(self, fields: FieldSet) -> Comparison:
        """Without these fields and all below them."""
        return Comparison(*(recursive_difference(each, fields) for each in self)) if fields else self


def compare(old: dict[str, Any], new: dict[str, Any], kind: MergeType) -> Comparison:
    """What `new` adds, modifies and removes. Raises TypedValueError."""
    found = Comparison({}, {}, {})
    _compare_maps(old, new, kind, found)
    return found


def everything(value: Any, kind: MergeType) -> FieldSet:
    """The node of a value that was added or removed as a whole: every field and every container is a member."""
    if not value or is_atomic(value, kind):
        return {}
    node: FieldSet = {SELF: {}}
    if isinstance(value, dict):
        fields, element_type = kind.fields, kind.element or DEDUCED_TYPE
        for name, item in value.items():
            of = fields.get(name) or element_type
            node["f:" + name] = {} if of.form == SCALAR else everything(item, of)
        return node
    element_type = kind.element or DEDUCED_TYPE
    duplicates = []
    for item in value:
        element = element_of(item, kind)
        if element in node:
            duplicates.append(element)
        else:
            node[element] = everything(item, element_type)
    for element in duplicates:
        node[element] = {}
    return node


def _compare_maps(old: dict[str, Any], new: dict[str, Any], kind: MergeType, found: Comparison) -> None:
    for name, after in new.items():
        if name in old:
            before = old[name]
            if before != after:
                _compare_values(before, after, child_type(kind, name), "f:" + name, found)
        else:
            found.added["f:" + name] = everything(after, child_type(kind, name))
    for name, before in old.items():
        if name not in new:
            found.removed["f:" + name] = everything(before, child_type(kind, name))


def _compare_values(old: Any, new: Any, kind: MergeType, element: str, found: Comparison) -> None:
    """Two values that differ."""
    if kind.form == DEDUCED:
        _compare_deduced(old, new, kind, element, found)
    elif is_atomic(new, kind) or not (old or new):
        found.modified[element] = {}
    else:
        inner = Comparison({}, {}, {})
        if kind.form == LIST:
            _compare_lists(old or (), new or (), kind, inner)
        else:
            _compare_maps(old or {}, new or {}, kind, inner)
        _attach(element, inner, found)


def _attach(element: str, inner: Comparison, found: Comparison) -> None:
    for children, outer in zip(inner, found, strict=True):
        if children:
            outer[element] = children


def _compare_deduced(old: Any, new: Any, kind: MergeType, element: str, found: Comparison) -> None:
    """Values of an unknown type may change from a map to something else, and back."""
    inner = Comparison({}, {}, {})
    maps = [each if isinstance(each, dict) else {} for each in (old, new)]
    _compare_maps(maps[0], maps[1], kind, inner)
    _attach(element, inner, found)
    if not (isinstance(old, dict) and isinstance(new, dict)) or not (old or new):
        node = found.modified.get(element)
        found.modified[element] = {SELF: {}, **node} if node else {}


def _by_element(items: Any, kind: MergeType) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element_of(item, kind), []).append(item)
    return found


def _compare_lists(old: Any, new: Any, kind: MergeType, found: Comparison) -> None:
    before, after = _by_element(old, kind), _by_element(new, kind)
    element_type = kind.element
    assert element_type is not None
    for element in before | after:
        was, now = before.get(element, []), after.get(element, [])
        if was == now:
            continue
        if len(was) <= 1 and len(now) <= 1:
            if not was:
                found.added[element] = everything(now[0], element_type)
            elif not now:
                found.removed[element] = everything(was[0], element_type)
            else:
                _compare_values(was[0], now[0], element_type, element, found)
        elif len(was) > 1 and len(now) > 1:
            found.modified[element] = {}
        elif len(was) > 1:
            # Elements of the same name were owned as one; the one that is left has fields of its own.
            found.removed[element] = {}
            if now:
                found.added[element] = everything(now[0], element_type)
        else:
            found.added[element] = {}
            if was:
                found.removed[element] = everything(was[0], element_type)
