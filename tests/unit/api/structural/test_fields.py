"""Pruning and defaulting."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.structural import Budget, Schema, TooExpensiveError, default, drop_nulls, prune

STRING = {"type": "string"}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


def struct(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


@pytest.mark.parametrize(
    ("props", "value", "expected", "unknown"),
    [
        (struct({"a": STRING}), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
        (struct({"a": struct({})}), {"a": {"b": {"c": 1}}}, {"a": {}}, ["a.b"]),
        (
            struct({"a": struct({"x": STRING}, **PRESERVE)}),
            {"a": {"x": "1", "b": 1}},
            {"a": {"x": "1", "b": 1}},
            [],
        ),
        (
            struct({"a": struct({"x": struct({"y": STRING})}, **PRESERVE)}),
            {"a": {"x": {"z": 1}, "b": {"c": 1}}},
            {"a": {"x": {}, "b": {"c": 1}}},
            ["a.x.z"],
        ),
        (
            struct({"a": {"type": "object", "additionalProperties": struct({"x": STRING})}}),
            {"a": {"k": {"x": "1", "y": 1}}},
            {"a": {"k": {"x": "1"}}},
            ["a.k.y"],
        ),
        (
            struct({"a": {"type": "array", "items": struct({"x": STRING})}}),
            {"a": [{"x": "1"}, {"y": 1}]},
            {"a": [{"x": "1"}, {}]},
            ["a[1].y"],
        ),
        (
            struct({"a": struct({"spec": struct({})}, **{"x-kubernetes-embedded-resource": True})}),
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"what": 1}, "other": 1}},
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"what": 1}}},
            ["a.other"],
        ),
        (struct({}), {"metadata": {"name": "x"}, "kind": "X"}, {"metadata": {"name": "x"}, "kind": "X"}, []),
    ],
)
def test_unknown_fields_are_removed_and_named(
    props: dict[str, Any], value: dict[str, Any], expected: dict[str, Any], unknown: list[str]
) -> None:
    assert prune(value, Schema(props), is_resource=True) == unknown
    assert value == expected


@pytest.mark.parametrize(
    ("props", "value", "expected"),
    [
        (struct({"a": {**STRING, "default": "x"}}), {}, {"a": "x"}),
        (struct({"a": {**STRING, "default": "x"}}), {"a": "y"}, {"a": "y"}),
        (struct({"a": {**STRING, "default": "x"}}), {"a": None}, {"a": "x"}),
        (struct({"a": {**STRING, "default": "x", "nullable": True}}), {"a": None}, {"a": None}),
        (struct({"a": struct({"b": {**STRING, "default": "x"}})}), {}, {}),
        (struct({"a": struct({"b": {**STRING, "default": "x"}}, default={})}), {}, {"a": {"b": "x"}}),
        (
            struct({"a": {"type": "array", "items": struct({"b": {**STRING, "default": "x"}})}}),
            {"a": [{}, {"b": "y"}]},
            {"a": [{"b": "x"}, {"b": "y"}]},
        ),
        (
            struct({"a": {"type": "object", "additionalProperties": {**STRING, "default": "x"}}}),
            {"a": {"k": None}},
            {"a": {"k": "x"}},
        ),
    ],
)
def test_defaults_are_set_where_nothing_is(
    props: dict[str, Any], value: dict[str, Any], expected: dict[str, Any]
) -> None:
    default(value, Schema(props), Budget())
    assert value == expected


def test_default_is_not_shared_between_objects() -> None:
    schema = Schema(struct({"a": struct({}, default={"x": []}, **PRESERVE)}))
    first: dict[str, Any] = {}
    default(first, schema, Budget())
    first["a"]["x"].append(1)
    second: dict[str, Any] = {}
    default(second, schema, Budget())
    assert second == {"a": {"x": []}}


def test_few_bytes_cannot_ask_for_many_copies_of_a_large_default() -> None:
    item = {**STRING, "default": "x" * 100_000}
    schema = Schema(struct({"a": {"type": "array", "items": item}}))
    with pytest.raises(TooExpensiveError):
        default({"a": [None] * 10_000}, schema, Budget())


def test_nulls_are_dropped_where_the_schema_allows_none() -> None:
    props = struct({"a": STRING, "b": {**STRING, "nullable": True}, "c": {**STRING, "default": "x"}})
    value = {"a": None, "b": None, "c": None}
    drop_nulls(value, Schema(props))
    assert value == {"b": None, "c": None}


_NAMES = st.sampled_from("abc")
_VALUES = st.recursive(
    st.none() | st.text(max_size=2) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
)
_PROPS = st.recursive(
    st.just(STRING) | st.just({**STRING, "default": "x"}) | st.just({"type": "object", **PRESERVE}),
    lambda inner: (
        st.dictionaries(_NAMES, inner, max_size=3).map(struct)
        | inner.map(lambda items: {"type": "array", "items": items})
        | inner.map(lambda each: {"type": "object", "additionalProperties": each})
    ),
)


@given(st.dictionaries(_NAMES, _PROPS, max_size=3).map(struct), st.dictionaries(_NAMES, _VALUES, max_size=3))
def test_what_was_pruned_and_defaulted_once_stays_as_it_is(
    props: dict[str, Any], value: dict[str, Any]
) -> None:
    schema = Schema(props)
    prune(value, schema)
    drop_nulls(value, schema)
    default(value, schema, Budget())
    once = deepcopy(value)
    assert prune(value, schema) == []
    default(value, schema, Budget())
    assert value == once
