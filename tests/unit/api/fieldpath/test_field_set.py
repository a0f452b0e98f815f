"""Sets of fields: the laws of sets, and FieldsV1 as upstream writes it."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.fieldpath import (
    difference,
    from_outside,
    has,
    in_order,
    intersection,
    of_paths,
    paths,
    recursive_difference,
    show_path,
    union,
)

A, B, C = ("f:a",), ("f:a", "f:b"), ("f:a", "f:b", "f:c")


def test_member_with_members_below_it_has_a_dot() -> None:
    assert of_paths(A) == {"f:a": {}}
    assert of_paths(B) == {"f:a": {"f:b": {}}}
    assert of_paths(A, B) == of_paths(B, A) == {"f:a": {".": {}, "f:b": {}}}


def test_a_path_is_a_member_only_if_it_was_put_in() -> None:
    fields = of_paths(B)
    assert (has(fields, B), has(fields, A), has(fields, C), has(fields, ())) == (True, False, False, False)


@pytest.mark.parametrize(
    ("one", "other", "both", "left", "left_recursively"),
    [
        ([A], [A], [A], [], []),
        ([A, B], [A], [A], [B], []),
        ([A, B], [B], [B], [A], [A]),
        ([B], [A], [], [B], []),
        ([A], [B], [], [A], [A]),
        ([B, C], [C], [C], [B], [B]),
        ([A, C], [B], [], [A, C], [A]),
        ([], [A], [], [], []),
    ],
)
def test_intersection_and_differences(
    one: list[Any], other: list[Any], both: list[Any], left: list[Any], left_recursively: list[Any]
) -> None:
    first, second = of_paths(*one), of_paths(*other)
    assert intersection(first, second) == of_paths(*both)
    assert difference(first, second) == of_paths(*left)
    assert recursive_difference(first, second) == of_paths(*left_recursively)
    assert union(first, second) == of_paths(*one, *other)


def test_order_is_upstreams() -> None:
    """Fields before keys before values; numbers by their size."""
    keys = [f'k:{{"port":{port},"protocol":"TCP"}}' for port in (443, 80, 9000)]
    fields = in_order({"f:b": {}, **{key: {} for key in keys}, "f:a": {}, 'v:"x"': {}})
    assert list(fields) == ["f:a", "f:b", keys[1], keys[0], keys[2], 'v:"x"']
    assert list(in_order({"f:y": {}, ".": {}, "f:x": {}})) == [".", "f:x", "f:y"]


def test_paths_come_level_by_level_as_messages_show_them() -> None:
    fields = of_paths(
        ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}'),
        ("f:spec", "f:z"),
        ("f:metadata", "f:finalizers", 'v:"a"'),
        ("i:3",),
    )
    shown = [show_path(path) for path in paths(fields)]
    assert shown == ["[3]", '.metadata.finalizers[="a"]', ".spec.z", '.spec.ports[port=80,protocol="TCP"]']


def test_a_set_from_outside_is_brought_into_form() -> None:
    sent: dict[str, Any] = {"f:b": {}, "q:unknown": {}, "f:a": {'k:{"y": 1, "x": "<"}': {".": {}}}, ".": {}}
    assert from_outside(sent) == {"f:a": {'k:{"x":"\\u003c","y":1}': {}}, "f:b": {}}
    assert from_outside(None) == {}


def _deep(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = {}
    for _ in range(levels):
        node = {"f:a": node}
    return node


@pytest.mark.parametrize(
    "sent",
    [
        [],
        "x",
        {"f:a": 5},
        {"": {}},
        {"f": {}},
        {"fa": {}},
        {"k:{": {}},
        {"k:[]": {}},
        {"i:x": {}},
        {"v:{}": {}},
        _deep(500),
    ],
)
def test_a_malformed_set_is_refused(sent: Any) -> None:
    with pytest.raises(ValueError):
        from_outside(sent)
