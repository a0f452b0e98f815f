"""JSON merge patch: the examples of RFC 7386 whose target is an object, and upstream's answers to mistakes."""

import copy
from typing import Any

import pytest

from podlife.api.patch import PatchError, go_format, invalid_patch, merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(target: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy([target, patch])
    assert merge_patch(target, patch) == result
    assert [target, patch] == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        (
            [1],
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "x",
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (
            True,
            "error decoding patch: json: cannot unmarshal bool into Go value of type map[string]interface {}",
        ),
    ],
)
def test_what_is_no_object_is_a_bad_request(patch: Any, message: str) -> None:
    with pytest.raises(PatchError) as refused:
        merge_patch({}, patch)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_a_result_that_cannot_be_read_is_told_as_upstream_does() -> None:
    patch = {"spec": {"foo": [1, "x", None, True, 2.0]}, "a": 1.5}
    error = invalid_patch(go_format(patch), "strict decoding error")
    value = "map[a:1.5 spec:map[foo:[1 x <nil> true 2]]]"
    assert error.code == 422
    assert error.message == f' "" is invalid: patch: Invalid value: "{value}": strict decoding error'
    assert error.details["causes"][0]["field"] == "patch"
