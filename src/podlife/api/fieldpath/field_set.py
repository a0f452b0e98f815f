"""Sets of fields, in the form of FieldsV1.

A set is a dictionary from elements to what is below them: `{}` is a member without members below it, a node with the
key `.` is a member and has others below it. Sets are never changed after they were made, so results share parts with
what they were made of. Every function takes time in proportion to the smaller set where that is possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podlife.api.fieldpath.elements import SELF, canonical_element, sort_key

FieldSet = dict[str, Any]
Path = tuple[str, ...]

# Deeper than any object can be.
_MOST_DEPTH = 300


def is_member(node: FieldSet) -> bool:
    """Whether the path to this node is in the set."""
    return not node or SELF in node


def _node(member: bool, below: FieldSet) -> FieldSet:
    """A node for a path that is a member, or has members below it, or both."""
    return {SELF: {}, **below} if member and below else below


def of_paths(*paths: Path) -> FieldSet:
    found: FieldSet = {}
    for path in paths:
        node: FieldSet = {}
        for element in reversed(path):
            node = {element: node}
        found = union(found, node)
    return found


def has(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for element in path:
        node = None if node is None else node.get(element)
    return node is not None and bool(path) and is_member(node)


def below(fields: FieldSet, element: str) -> FieldSet:
    """The members below an element, as a set of their own."""
    node = fields.get(element)
    if not node:
        return {}
    return {name: child for name, child in node.items() if name != SELF} if SELF in node else node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of either."""
    if not one or not other:
        return one or other
    found = dict(one)
    for element, node in other.items():
        mine = found.get(element)
        if mine is None:
            found[element] = node
        elif mine is not node and element != SELF:
            found[element] = _union_of_nodes(mine, node)
    return found


def _union_of_nodes(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one:
        return other if not other or SELF in other else {SELF: {}, **other}
    if not other:
        return one if SELF in one else {SELF: {}, **one}
    return union(one, other)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of both."""
    if len(other) < len(one):
        one, other = other, one
    found: FieldSet = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is None or element == SELF:
            continue
        both = is_member(node) and is_member(theirs)
        children = intersection(node, theirs) if node and theirs else {}
        if both or children:
            found[element] = _node(both, children)
    return found


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of `one` that are not members of `other`: what is below a member of `other` stays."""
    return _without(one, other, recursive=False) if one and other else one


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The members of `one` that are neither members of `other` nor below one."""
    return _without(one, other, recursive=True) if one and other else one


def _without(one: FieldSet, other: FieldSet, *, recursive: bool) -> FieldSet:
    changed: FieldSet | None = None
    for element, theirs in other.items():
        node = one.get(element)
        if node is None or element == SELF:
            continue
        gone = recursive and is_member(theirs)
        left = None if gone else _node_without(node, theirs, recursive=recursive)
        if left is node:
            continue
        if changed is None:
            changed = dict(one)
        if left is None:
            del changed[element]
        else:
            changed[element] = left
    return one if changed is None else changed


def _node_without(node: FieldSet, theirs: FieldSet, *, recursive: bool) -> FieldSet | None:
    was_member, stays = is_member(node), is_member(node) and not is_member(theirs)
    children = _without(node, theirs, recursive=recursive) if node and theirs else node
    if was_member and not stays:
        children = {name: child for name, child in children.items() if name != SELF}
        return children or None
    if children is node:
        return node
    if len(children) == 1 and SELF in children:
        return {}
    return children if children or stays else None


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Every member, in upstream's order: those of a level before those below it."""
    elements = sorted((element for element in fields if element != SELF), key=sort_key)
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        if fields[element]:
            yield from paths(fields[element], (*prefix, element))


def in_order(fields: FieldSet) -> FieldSet:
    """The same set in the order in which upstream writes it."""
    if not fields:
        return fields
    elements = list(fields)
    # In one list or map all are of one kind. "." sorts before every letter.
    is_plain = elements[-1][0] == "f" and elements[0][0] in ".f"
    elements.sort(key=None if is_plain else sort_key)
    # Most are leaves.
    return {element: in_order(node) if (node := fields[element]) else node for element in elements}


def from_outside(fields: Any) -> FieldSet:
    """A set that a client sent, checked and in order; raises ValueError. Elements of unknown kinds are left out."""
    return in_order(_read(fields, 0, at_root=True) or {})


def _read(fields: Any, depth: int, *, at_root: bool = False) -> FieldSet | None:
    if depth > _MOST_DEPTH:
        raise ValueError("exceeded max depth")
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise ValueError("expected a map of fields")
    found: FieldSet = {}
    member = False
    for name, node in fields.items():
        if name == SELF:
            member = True
            continue
        element = canonical_element(name)
        if element is None:
            continue
        children = _read(node, depth + 1) or {}
        mine = found.get(element)
        found[element] = children if mine is None else _union_of_nodes(mine, children)
    return found if at_root else _node(member, found)
