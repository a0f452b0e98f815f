"""Selectors: what they match, how they print, and the words in which a bad one is refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.selectors import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    FieldSelector,
    escape_field_value,
    label_selector_from_dict,
    parse_field_selector,
    parse_label_selector,
)

KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
INTEGER_RULE = "for 'Gt', 'Lt' operators, the value must be an integer"


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("  ", None, True),
        ("app=web", {"app": "web"}, True),
        ("app==web", {"app": "web"}, True),
        ("app=web", {"app": "db"}, False),
        ("app=web", None, False),
        ("app=", {"app": ""}, True),
        ("app=", {}, False),
        ("app!=web", {"app": "db"}, True),
        ("app!=web", {}, True),
        ("app!=web", {"app": "web"}, False),
        ("app in (web, db)", {"app": "db"}, True),
        ("app in (web,db)", {}, False),
        ("app in (web,)", {"app": ""}, True),
        ("app in ()", {"app": ""}, True),
        ("app notin (web,db)", {"app": "db"}, False),
        ("app notin (web,db)", {}, True),
        ("app", {"app": ""}, True),
        ("app", {}, False),
        ("!app", {}, True),
        ("! app", {"app": "x"}, False),
        ("size>3", {"size": "4"}, True),
        ("size>3", {"size": "3"}, False),
        ("size>3", {"size": "big"}, False),
        ("size>3", {}, False),
        ("size<3", {"size": "-7"}, True),
        ("size<3", {"size": "1_0"}, False),
        ("size<3", {"size": "99999999999999999999"}, False),
        ("in in (in,notin)", {"in": "notin"}, True),
        ("a=1,b!=2,!c,d", {"a": "1", "d": "x"}, True),
        ("a=1,b!=2,!c,d", {"a": "1", "d": "x", "c": ""}, False),
        ("example.com/app=web", {"example.com/app": "web"}, True),
    ],
)
def test_a_label_selector_matches_as_upstream(
    text: str, labels: dict[str, str] | None, expected: bool
) -> None:
    assert parse_label_selector(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("b in (z, a ,a), a = 1", "a=1,b in (a,z)"),
        ("x==1", "x==1"),
        ("!x,y", "!x,y"),
        ("x notin (,)", "x notin ()"),
        ("n>1,n<9", "n>1,n<9"),
        ("x!=", "x!="),
    ],
)
def test_a_label_selector_prints_its_canonical_text(text: str, canonical: str) -> None:
    selector = parse_label_selector(text)
    assert str(selector) == canonical
    assert parse_label_selector(canonical) == selector


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=web", "found '=', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,=", "found '=', expected: identifier after ','"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a!b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a>b", f'unable to parse requirement: values[0]: Invalid value: "b": {INTEGER_RULE}'),
        ("a$=b", f'unable to parse requirement: <nil>: Invalid value: "a$": {KEY_RULE}'),
        ("a=$", f'unable to parse requirement: values[0][a]: Invalid value: "$": {VALUE_RULE}'),
    ],
)
def test_a_bad_label_selector_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_label_selector(text)
    assert str(refused.value) == message


def test_selectors_are_equal_and_hash_by_content() -> None:
    one, other = parse_label_selector("a=1,b in (x,y)"), parse_label_selector("b in (y,x), a=1")
    assert one == other
    assert hash(one) == hash(other)
    assert one != parse_label_selector("a=1")
    assert EVERYTHING != NOTHING


def test_a_selector_object_matches_labels_and_expressions() -> None:
    selector = label_selector_from_dict(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
                {"key": "app", "operator": "Exists"},
            ],
        }
    )
    assert str(selector) == "app=web,app,!old,tier in (a,b),zone notin (x)"
    assert selector.matches({"app": "web", "tier": "a"})
    assert not selector.matches({"app": "web", "tier": "a", "old": ""})


def test_no_selector_object_matches_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector_from_dict(None).matches({"a": "b"})
    assert not label_selector_from_dict(None).is_empty
    assert label_selector_from_dict({}).matches({"a": "b"})
    assert label_selector_from_dict({"matchLabels": None}).is_empty


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Near"}, '"Near" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["b"]},
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
        ({"key": "a$", "operator": "Exists"}, f'key: Invalid value: "a$": {KEY_RULE}'),
    ],
)
def test_a_bad_selector_object_is_refused(expression: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as refused:
        label_selector_from_dict({"matchExpressions": [expression]})
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", ()),
        (",,", ()),
        ("status.phase=Running", (("status.phase", "=", "Running"),)),
        ("a==b", (("a", "=", "b"),)),
        ("b!=,a=1", (("a", "=", "1"), ("b", "!=", ""))),
        (r"a=x\,y\=z\\", (("a", "=", "x,y=z\\"),)),
        ("=x", (("", "=", "x"),)),
    ],
)
def test_a_field_selector_is_parsed(text: str, requirements: tuple[tuple[str, str, str], ...]) -> None:
    expected = FieldSelector(tuple(FieldRequirement(*requirement) for requirement in requirements))
    assert parse_field_selector(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\n", r"invalid field selector: invalid escape sequence: \n"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_selector_is_refused_in_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_field_selector(text)
    assert str(refused.value) == message


def test_a_field_selector_matches_and_an_absent_field_is_empty() -> None:
    selector = parse_field_selector("spec.nodeName!=,status.phase=Running")
    assert selector.matches({"spec.nodeName": "n1", "status.phase": "Running"})
    assert not selector.matches({"status.phase": "Running"})
    assert selector.exact("status.phase") == "Running"
    assert selector.exact("spec.nodeName") is None


@given(st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.sampled_from(["=", "!="]), st.text())))
def test_any_field_value_survives_printing_and_parsing(terms: list[tuple[str, str, str]]) -> None:
    text = ",".join(f"{path}{operator}{escape_field_value(value)}" for path, operator, value in terms)
    parsed = parse_field_selector(text)
    assert sorted((r.path, r.operator, r.value) for r in parsed.requirements) == sorted(terms)
    assert parse_field_selector(str(parsed)) == parsed


@given(st.text(alphabet="ab=!(),<> in1$\\", max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (parse_label_selector, parse_field_selector):
        try:
            selector = parse(text)
        except ValueError as refused:
            assert str(refused)  # noqa: PT017 - both outcomes are fine, nothing else is
        else:
            assert parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a in (x,y),a in (y,z)", {"a": "y"}, True),
        ("a in (x,y),a in (y,z)", {"a": "x"}, False),
        ("a in (x),a in (y)", {"a": "x"}, False),
        ("a!=x,a notin (y),b!=x", {"a": "z"}, True),
        ("a!=x,a notin (y),b!=x", {"a": "y"}, False),
        ("a!=x,a notin (y),b!=x", {"a": "z", "b": "x", "c": "", "d": ""}, False),
        ("a!=", {}, True),
        ("a!=", {"a": ""}, False),
        ("n>1,n>3,n<9,n<7", {"n": "4"}, True),
        ("n>1,n>3,n<9,n<7", {"n": "3"}, False),
        ("n>1,n>3,n<9,n<7", {"n": "7"}, False),
        ("a,b,!c", {"a": "", "b": ""}, True),
        ("a,b,!c", {"a": "", "b": "", "c": ""}, False),
        ("a,!a", {"a": ""}, False),
        ("a=1,a=2", {"a": "1"}, False),
        ("a=1,a=1", {"a": "1"}, True),
    ],
)
def test_requirements_on_one_label_must_all_hold(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse_label_selector(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("a=1,a=1", {"a": "1"}, True),
        ("a=1,a=2", {"a": "1"}, False),
        ("a!=1,a!=2", {"a": "3"}, True),
        ("a!=1,a!=2", {"a": "2"}, False),
        ("a=1,a!=1", {"a": "1"}, False),
        ("a=,b!=x", {}, True),
    ],
)
def test_requirements_on_one_field_must_all_hold(text: str, fields: dict[str, str], expected: bool) -> None:
    assert parse_field_selector(text).matches(fields) is expected


@pytest.mark.parametrize("form", ["!k{}", "k{}!=v", "k{} notin (a,b)"])
def test_a_selector_of_thousands_of_requirements_costs_an_object_no_more_than_its_labels(form: str) -> None:
    selector = parse_label_selector(",".join(form.format(number) for number in range(4_000)))
    labels = {f"l{number}": "v" for number in range(8)}
    began = time.process_time()
    assert all(selector.matches(labels) for _ in range(20_000))
    assert time.process_time() - began < 5.0


def test_a_field_selector_of_thousands_of_requirements_costs_an_object_little() -> None:
    selector = parse_field_selector(",".join(f"metadata.name!=n{number}" for number in range(4_000)))
    began = time.process_time()
    assert all(selector.matches({"metadata.name": "x"}) for _ in range(20_000))
    assert time.process_time() - began < 5.0
