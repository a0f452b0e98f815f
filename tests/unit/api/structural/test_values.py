"""Validation of values. The messages are compared with kube-apiserver's in `tests/real/differential`."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.structural import NEW, Budget, Schema, TooExpensiveError, validate_lists, validate_value

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


def errors(props: dict[str, Any], value: Any, old: Any = NEW) -> list[str]:
    return [str(error) for error in validate_value({"a": value}, around(props), Budget(), old=old)]


def around(props: dict[str, Any]) -> Schema:
    return Schema({"type": "object", "properties": {"a": props}})


@pytest.mark.parametrize(
    ("props", "value"),
    [
        (STRING, ""),
        (INTEGER, 3),
        (INTEGER, 3.0),
        ({"type": "number"}, 3),
        ({"type": "boolean"}, False),
        ({"type": "object"}, {"anything": 1}),
        ({"type": "array", "items": STRING}, ["x"]),
        ({**STRING, "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"x-kubernetes-int-or-string": True}, 50),
        ({**STRING, "format": "date-time"}, "2030-01-02T03:04:05.678Z"),
        ({**STRING, "format": "unheard-of"}, "anything"),
        ({**STRING, "enum": ["x", "y"]}, "y"),
        ({**STRING, "pattern": "b+"}, "abc"),
        ({"type": "object", "additionalProperties": INTEGER}, {"x": 1}),
        ({**STRING, "oneOf": [{"minLength": 3}, {"pattern": "^x$"}]}, "x"),
        ({**INTEGER, "maximum": 5, "minimum": 5}, 5),
    ],
)
def test_value_that_fits_has_no_errors(props: dict[str, Any], value: Any) -> None:
    assert errors(props, value) == []


@pytest.mark.parametrize(
    ("props", "value", "expected"),
    [
        (STRING, 1, 'a: Invalid value: "integer": a in body must be of type string: "integer"'),
        (INTEGER, True, 'a: Invalid value: "boolean": a in body must be of type integer: "boolean"'),
        (STRING, None, 'a: Invalid value: "null": a in body must be of type string: "null"'),
        ({**STRING, "maxLength": 1}, "xx", "a: Too long: may not be more than 1 bytes"),
        ({**STRING, "enum": ["x"]}, "y", 'a: Unsupported value: "y": supported values: "x"'),
        (
            {**STRING, "nullable": True, "enum": ["x", None]},
            None,
            'a: Unsupported value: null: supported values: "x", "null"',
        ),
        (
            {**INTEGER, "maximum": 5, "exclusiveMaximum": True},
            5,
            "a: Invalid value: 5: a in body should be less than 5",
        ),
        ({"type": "object", "required": ["b"]}, {}, "a.b: Required value"),
        (
            {"type": "array", "items": STRING, "maxItems": 1},
            ["x", "y"],
            "a: Too many: 2: must have at most 1 item",
        ),
        (
            {**STRING, "not": {"pattern": "x"}},
            "x",
            '<nil>: Invalid value: "": "a" must not validate the schema (not)',
        ),
    ],
)
def test_error_is_told_as_the_real_server_tells_it(props: dict[str, Any], value: Any, expected: str) -> None:
    assert errors(props, value) == [expected]


def test_unchanged_part_of_an_object_may_stay_invalid() -> None:
    assert errors({**STRING, "maxLength": 1}, "long", old={"a": "long"}) == []
    assert errors({**STRING, "maxLength": 1}, "longer", old={"a": "long"}) != []


def test_items_of_a_map_list_are_compared_by_their_key() -> None:
    item = {"type": "object", "properties": {"k": STRING, "v": {**STRING, "maxLength": 1}}}
    props = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    old = {"a": [{"k": "1", "v": "long"}]}
    assert errors(props, [{"k": "0", "v": "x"}, {"k": "1", "v": "long"}], old=old) == []
    assert errors(props, [{"k": "2", "v": "long"}], old=old) == [
        "a[0].v: Too long: may not be more than 1 bytes"
    ]


def test_pattern_that_would_backtrack_for_ever_is_matched_at_once() -> None:
    assert len(errors({**STRING, "pattern": "^(a+)+$"}, "a" * 50_000 + "b")) == 1


def test_large_pattern_for_a_long_text_is_bounded() -> None:
    with pytest.raises(TooExpensiveError):
        errors({**STRING, "pattern": "[ab]*a" + "[ab]{1000}" * 5}, "ab" * 50_000)


def test_small_object_for_a_large_schema_is_bounded() -> None:
    item = {"type": "object", "required": [str(number) for number in range(3_000)]}
    with pytest.raises(TooExpensiveError):
        errors({"type": "array", "items": item}, [{}] * 3_000)


def test_each_value_of_a_set_is_told_once() -> None:
    schema = around({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"})
    found = [str(error) for error in validate_lists({"a": ["x", "y", "x", "x"]}, schema)]
    assert found == ['a[2]: Duplicate value: "x"']


def test_true_and_one_are_different_values_of_a_set() -> None:
    items = {"x-kubernetes-preserve-unknown-fields": True}
    schema = around({"type": "array", "items": items, "x-kubernetes-list-type": "set"})
    assert list(validate_lists({"a": [1, True, "1"]}, schema)) == []
