"""Schemas themselves: how they are decoded, what is wrong with them, formats and patterns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podlife.api.patterns import compile_pattern
from podlife.api.schema import DecodeError
from podlife.api.structural import check_schema, decode_props
from podlife.api.structural.formats import has_format

STRING = {"type": "string"}


def nested(levels: int) -> dict[str, Any]:
    props: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        props = {"type": "object", "properties": {"a": props}}
    return props


def test_schema_keeps_what_go_would_write() -> None:
    props = {
        "type": "string",
        "description": "",
        "minLength": 0,
        "nullable": False,
        "enum": [],
        "default": None,
        "x-kubernetes-preserve-unknown-fields": False,
    }
    assert decode_props(props, "s")[0] == {
        "type": "string",
        "minLength": 0,
        "x-kubernetes-preserve-unknown-fields": False,
    }


def test_unknown_fields_are_named_where_upstream_names_them() -> None:
    props = {"what": 1, "properties": {"a": {"why": 1}}, "items": {"not told": 1}}
    read, unknown = decode_props(props, "s")
    assert unknown == ['unknown field "s.what"', 'unknown field "s.properties.a.why"']
    assert read == {"properties": {"a": {}}, "items": {}}


@pytest.mark.parametrize(
    "props", [{"maxLength": "x"}, {"required": "x"}, {"properties": []}, {"type": 1}, [], "x"]
)
def test_wrong_type_is_refused(props: Any) -> None:
    with pytest.raises(DecodeError, match="cannot unmarshal"):
        decode_props(props, "s")


def test_depth_is_bounded() -> None:
    assert check_schema(decode_props(nested(60), "s")[0], "s") == []
    with pytest.raises(DecodeError, match="nested 64 levels deep"):
        decode_props(nested(70), "s")


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        ({"type": "object"}, []),
        ({"properties": {"a": STRING}}, ["s.type: Required value: must not be empty at the root"]),
        (
            {"type": "object", "properties": {"a": {"type": "array"}}},
            ["s.properties[a].items: Required value: must be specified"],
        ),
        (
            {"type": "object", "properties": {"a": {**STRING, "default": 1}}},
            ["s.properties[a].default: Invalid value"],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "object", "anyOf": [{"properties": {"b": {}}}]}}},
            [],
        ),
    ],
)
def test_errors_of_a_schema(props: dict[str, Any], expected: list[str]) -> None:
    found = [str(error) for error in check_schema(props, "s")]
    assert len(found) == len(expected)
    for text, wanted in zip(found, expected, strict=True):
        assert text.partition(":")[0] == wanted.partition(":")[0]


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("a(", "error parsing regexp: missing closing ): `a(`"),
        ("(?=x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
    ],
)
def test_bad_pattern_is_told_in_the_words_of_go(pattern: str, error: str) -> None:
    with pytest.raises(ValueError, match="error parsing regexp") as caught:
        compile_pattern(pattern)
    assert str(caught.value) == error


def test_patterns_are_bounded_together() -> None:
    fields = {f"f{number}": {**STRING, "pattern": f"{number}" * 10} for number in range(1_000)}
    found = check_schema({"type": "object", "properties": fields}, "s")
    assert [str(error) for error in found] == [
        's: Invalid value: "": all patterns together may have at most 16384 characters'
    ]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2030-02-28", "2030-02-30"),
        ("date-time", "2030-02-28T10:00:00Z", "2030-02-28"),
        ("duration", "1h30m", "soon"),
        ("duration", "3 days", "3 suns"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uri", "https://example.com/x", "example.com"),
        ("email", "a@example.com", "a"),
        ("hostname", "a.example.com", "-a"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("uuid", "501476f8-b9bc-4eaf-820c-be6279e7855b", "501476f8"),
        ("uuid4", "501476f8-b9bc-4eaf-820c-be6279e7855b", "501476f8-b9bc-3eaf-820c-be6279e7855b"),
        ("byte", "YWJj", "YWJ"),
        ("hexcolor", "#ff00aa", "#ff0"[:3]),
        ("rgbcolor", "rgb(1, 2, 255)", "rgb(1, 2, 256)"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "123-45-6789", "12-345-6789"),
        ("k8s-short-name", "a-b", "A"),
        ("k8s-long-name", "a.b-c", "a..b"),
    ],
)
def test_format_tells_good_from_bad(name: str, good: str, bad: str) -> None:
    assert has_format(good, name)
    assert not has_format(bad, name)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "anyOf", "not", "default", "enum", "pattern", "required", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
@example({"items": []})
@example({"not": {"items": []}})
def test_any_schema_is_refused_or_checked(value: Any) -> None:
    try:
        props, _ = decode_props(value, "s")
    except DecodeError:
        return
    assert isinstance([str(error) for error in check_schema(props, "s")], list)
