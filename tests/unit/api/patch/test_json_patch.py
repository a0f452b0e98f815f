"""JSON patch: the examples of RFC 6902, the habits of upstream's library, and its answers to mistakes."""

import copy
from typing import Any

import pytest

from podlife.api.patch import PatchError, json_patch, unknown_operation_fields


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
        (
            {"foo": ["bar", "baz"]},
            [{"op": "add", "path": "/foo/1", "value": "qux"}],
            {"foo": ["bar", "qux", "baz"]},
        ),
        ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
            {"foo": ["all", "cows", "eat", "grass"]},
        ),
        (
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
            {"baz": "qux", "foo": ["a", 2, "c"]},
        ),
        (
            {"foo": "bar"},
            [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
            {"foo": "bar", "child": {"grandchild": {}}},
        ),
        ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
        ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
    ],
)
def test_the_examples_of_the_rfc(document: Any, operations: Any, result: Any) -> None:
    before = copy.deepcopy([document, operations])
    assert json_patch(document, operations) == result
    assert [document, operations] == before


@pytest.mark.parametrize(
    ("document", "operation", "result"),
    [
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-1", "value": 2}, {"a": [1, 2]}),
        ({}, {"op": "replace", "path": "/new", "value": 1}, {"new": 1}),
        ({}, {"op": "test", "path": "/missing", "value": None}, {}),
        ({}, {"op": "add", "path": "/a"}, {"a": None}),
        ({"b": 0}, {"op": "replace", "path": "a/b", "value": 1}, {"b": 1}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {"b": 2}}, {"b": 2}),
        ({"a": 1}, {"op": "test", "path": "", "value": {"a": 1}}, {"a": 1}),
    ],
)
def test_the_habits_of_the_library_upstream_uses(document: Any, operation: Any, result: Any) -> None:
    assert json_patch(document, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/a", "value": 1.0},
        {"op": "test", "path": "", "value": {}},
        {"op": "test", "path": "/l/0", "value": {"x": 2}},
        {"op": "foo", "path": "/a"},
        {"path": "/a"},
        {"op": "add"},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "add", "path": "/l/7", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "replace", "path": "", "value": 5},
        {"op": "replace", "path": "/l/1", "value": 5},
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": "/l/-2"},
        {"op": "move", "from": "/missing", "path": "/b"},
        {"op": "move", "path": "/b"},
        {"op": "copy", "from": "/l/9", "path": "/b"},
        None,
    ],
)
def test_a_patch_that_does_not_fit_is_unprocessable(operation: Any) -> None:
    with pytest.raises(PatchError) as refused:
        json_patch({"a": 1, "l": [{"x": 1}]}, [operation])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == "the server rejected our request due to an error in our request"
    assert refused.value.cause


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ({"op": "add"}, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([5], "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (
            [{"op": "add", "path": 5}],
            "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
        ),
    ],
)
def test_what_is_no_json_patch_is_a_bad_request(operations: Any, message: str) -> None:
    with pytest.raises(PatchError) as refused:
        json_patch({}, operations)
    assert (refused.value.code, refused.value.message) == (400, f"error decoding patch: {message}")


def test_more_than_ten_thousand_operations_are_too_many() -> None:
    operation = {"op": "test", "path": "/a", "value": 1}
    assert json_patch({"a": 1}, [operation] * 10_000) == {"a": 1}
    with pytest.raises(PatchError) as refused:
        json_patch({"a": 1}, [operation] * 10_001)
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")
    assert refused.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_null_and_no_operations_change_nothing() -> None:
    assert json_patch({"a": 1}, None) == json_patch({"a": 1}, []) == {"a": 1}


def test_a_copy_does_not_follow_its_source() -> None:
    operations = [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/a/x", "value": 1}]
    assert json_patch({"a": {}}, operations) == {"a": {"x": 1}, "b": {}}


def test_fields_of_an_operation_that_mean_nothing_are_told() -> None:
    operations = [{"op": "add", "path": "/a", "value": 1, "bar": 1}, None]
    assert unknown_operation_fields(operations) == ['json patch unknown field "[0].bar"']
