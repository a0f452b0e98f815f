"""Laws of field sets and of apply, over objects and managers drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.api.fieldpath import (
    FieldSet,
    compare,
    difference,
    field_set_of,
    from_outside,
    has,
    in_order,
    intersection,
    merge_type_of_kind,
    of_paths,
    paths,
    recursive_difference,
    union,
    updater_of_kind,
)

KIND = merge_type_of_kind("v1", "Pod")
UPDATER = updater_of_kind("v1", "Pod")

_NAMES = st.sampled_from(["a", "b", "c"])
_MAPS = st.dictionaries(_NAMES, _NAMES, min_size=1, max_size=2)
_ELEMENTS = st.one_of(
    _NAMES.map(lambda name: f"f:{name}"),
    _NAMES.map(lambda name: f'k:{{"name":"{name}"}}'),
    _NAMES.map(lambda name: f'v:"{name}"'),
)
SETS = st.lists(st.lists(_ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=8).map(
    lambda found: of_paths(*found)
)


def _named(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    element = st.fixed_dictionaries({"name": _NAMES}, optional=fields)
    return st.lists(element, min_size=1, max_size=3, unique_by=lambda item: item["name"])


_PORTS = st.lists(
    st.fixed_dictionaries({"containerPort": st.integers(1, 3)}, optional={"name": _NAMES}),
    min_size=1,
    max_size=2,
    unique_by=lambda port: port["containerPort"],
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": _MAPS, "finalizers": st.lists(_NAMES, min_size=1, unique=True)}
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": _named(
                    image=_NAMES, ports=_PORTS, args=st.lists(_NAMES, max_size=2), env=_named(value=_NAMES)
                ),
                "nodeSelector": _MAPS,
                "hostname": _NAMES,
                "securityContext": st.fixed_dictionaries({}, optional={"runAsUser": st.integers(0, 2)}),
            },
        ),
    },
)


def members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(paths(fields))


@given(SETS, SETS)
def test_sets_of_fields_are_sets(one: FieldSet, other: FieldSet) -> None:
    assert members(union(one, other)) == members(one) | members(other)
    assert members(intersection(one, other)) == members(one) & members(other)
    assert members(difference(one, other)) == members(one) - members(other)
    above = members(other)
    left = {path for path in members(one) if not any(path[:end] in above for end in range(1, len(path) + 1))}
    assert members(recursive_difference(one, other)) == left
    assert from_outside(one) == in_order(one)
    assert list(from_outside(one)) == list(in_order(one))
    assert all(has(one, path) for path in members(one))


@given(OBJECTS, OBJECTS)
def test_what_is_added_one_way_is_removed_the_other_way(old: Any, new: Any) -> None:
    there, back = compare(old, new, KIND), compare(new, old, KIND)
    assert members(there.added) == members(back.removed)
    assert members(there.modified) == members(back.modified)
    assert there.is_same == (old == new or not (there.added or there.modified or there.removed))


@given(OBJECTS, OBJECTS)
def test_apply_is_idempotent(live: Any, config: Any) -> None:
    managers = UPDATER.update({}, live, {}, "maker")
    once, owners = UPDATER.apply(live, config, managers, "me", force=True)
    again, same = UPDATER.apply(once, config, owners, "me", force=False)
    assert (again, same) == (once, owners)


@given(OBJECTS, OBJECTS)
def test_a_forced_apply_has_all_that_it_mentions(live: Any, config: Any) -> None:
    managers = UPDATER.update({}, live, {}, "maker")
    new, owners = UPDATER.apply(live, config, managers, "me", force=True)
    mentioned = field_set_of(config, KIND)
    assert (owners["me"].fields if "me" in owners else {}) == mentioned
    changed = compare(live, new, KIND)
    if "maker" in owners:
        assert not members(intersection(owners["maker"].fields, union(changed.modified, changed.removed)))
    # Everything that was mentioned is there as it was given: applying it changes nothing.
    merged, _ = UPDATER.apply(new, config, {}, "other", force=True)
    assert merged == new


@given(OBJECTS, OBJECTS, OBJECTS)
def test_nobody_owns_what_is_not_there(first: Any, second: Any, third: Any) -> None:
    live, managers = UPDATER.apply({}, first, {}, "one", force=True)
    live, managers = UPDATER.apply(live, second, managers, "two", force=True)
    live, managers = UPDATER.apply(live, third, managers, "one", force=True)
    there = members(UPDATER.update({}, live, {}, "all")["all"].fields) if live else set()
    for managed in managers.values():
        leaves = {path for path in members(managed.fields) if path in there or not _is_empty(live, path)}
        assert members(managed.fields) <= there | leaves


def _is_empty(live: Any, path: tuple[str, ...]) -> bool:
    """Whether a declared field above the path is absent or empty."""
    value = live
    for element in path:
        if not element.startswith("f:") or not isinstance(value, dict):
            return not value
        value = value.get(element[2:])
    return not value
