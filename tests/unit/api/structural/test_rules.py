"""Validation rules: what a schema may not ask, what values are refused for, and what evaluation may take."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.field_errors import RatchetedError
from podlife.api.structural import (
    Budget,
    RuleEvaluation,
    TooExpensiveError,
    check_schema,
    find_field,
    rule_tree,
)

RULES = "x-kubernetes-validations"
TEXT = {"type": "string", "maxLength": 20}
LIST_MAP = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}


def ruled(props: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {**props, RULES: [rule if isinstance(rule, dict) else {"rule": rule} for rule in rules]}


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def problems(props: dict[str, Any]) -> list[str]:
    return [str(error) for error in check_schema(struct(a=props), "s")]


def violations(props: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    tree = rule_tree(props)
    assert tree is not None
    evaluation = RuleEvaluation(Budget())
    evaluation.validate(tree, value, old)
    return [f"{'W ' * isinstance(error, RatchetedError)}{error}" for error in evaluation.errors]


def test_rule_that_does_not_compile_is_shown_with_the_place_in_it() -> None:
    [problem] = problems(ruled(TEXT, "self == nope"))
    assert problem.startswith(f's.properties[a].{RULES}[0].rule: Invalid value: {{"Rule":"self == nope",')
    assert "compilation failed: ERROR: <input>:1:9: undeclared reference to 'nope'" in problem


@pytest.mark.parametrize(
    ("props", "text"),
    [
        (ruled(TEXT, "self"), "cel expression must evaluate to a bool"),
        (
            ruled(TEXT, {"rule": "true", "messageExpression": "1"}),
            "messageExpression must evaluate to a string",
        ),
        (
            ruled(TEXT, {"rule": "true", "optionalOldSelf": False}),
            "may not be set if oldSelf is not used in rule",
        ),
        (ruled(TEXT, {"rule": "true", "fieldPath": ".b"}), "must be a valid path"),
        (
            {"type": "array", "maxItems": 2, "items": ruled(TEXT, "self == oldSelf")},
            "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[a]",
        ),
        (
            ruled({"x-kubernetes-preserve-unknown-fields": True}, "true"),
            "unable to convert structural schema to CEL declarations",
        ),
        (ruled({**TEXT, "default": "b"}, "self == 'a'"), "failed rule: self == 'a'"),
    ],
)
def test_rule_that_cannot_be_used_is_refused(props: dict[str, Any], text: str) -> None:
    [problem] = problems(props)
    assert problem.endswith(text)


def test_rule_that_may_cost_too_much_is_refused_with_the_factor() -> None:
    unbounded = {"type": "array", "items": {"type": "string"}}
    [rule, contributor, total] = problems(ruled(unbounded, "self.all(x, self.all(y, x == y))"))
    assert "estimated rule cost exceeds budget by factor of more than 100x (try" in rule
    assert contributor.endswith("estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
    assert total.startswith(f"s: Forbidden: {RULES} estimated rule cost total for entire")


def test_violation_has_the_path_the_message_and_the_reason_of_its_rule() -> None:
    props = ruled(
        struct(a=TEXT, b=struct(c=TEXT)),
        {"rule": "self.a != 'x'", "fieldPath": ".b.c", "reason": "FieldValueRequired", "message": " give c "},
        {"rule": "self.a != 'x'", "messageExpression": "'not ' + self.a"},
    )
    assert violations(struct(o=props), {"o": {"a": "x"}}) == [
        "o.b.c: Required value: give c",
        "o: Invalid value: not x",
    ]


def test_rule_about_the_old_value_applies_to_updates() -> None:
    props = struct(a=ruled(TEXT, "self == oldSelf"))
    assert violations(props, {"a": "x"}) == []
    assert violations(props, {"a": "x"}, {}) == []
    assert violations(props, {"a": "x"}, {"a": "y"}) == [
        'a: Invalid value: "x": failed rule: self == oldSelf'
    ]


def test_rule_with_an_optional_old_value_applies_to_new_values_too() -> None:
    rule = {"rule": "oldSelf.orValue('first') == 'first'", "optionalOldSelf": True}
    props = struct(a=ruled(TEXT, rule))
    assert violations(props, {"a": "x"}) == []
    assert violations(props, {"a": "x"}, {"a": "first"}) == []
    assert len(violations(props, {"a": "x"}, {"a": "y"})) == 1


def test_violation_in_a_part_that_stays_is_a_warning() -> None:
    item = struct(k=TEXT, v=ruled(TEXT, "self != 'bad'"))
    props = struct(
        keyed={"type": "array", "items": item, **LIST_MAP}, atomic={"type": "array", "items": item}, b=TEXT
    )
    bad = [{"k": "1", "v": "bad"}]
    old = {"keyed": bad, "atomic": bad, "b": "x"}
    at = "v: Invalid value: \"bad\": failed rule: self != 'bad'"
    assert violations(props, {**old, "b": "y"}, old) == [f"W keyed[0].{at}", f"W atomic[0].{at}"]
    more = [{"k": "2"}, *bad]
    assert violations(props, {"keyed": more, "atomic": more}, old) == [f"W keyed[1].{at}", f"atomic[1].{at}"]


def test_failure_of_an_evaluation_is_reported() -> None:
    props = ruled(struct(a={"type": "integer"}), "10 / self.a > 1")
    assert violations(props, {"a": 0}) == [
        '<nil>: Invalid value: "object": division by zero evaluating rule: 10 / self.a > 1'
    ]
    assert violations(props, {}) == [
        '<nil>: Invalid value: "object": no such key: a evaluating rule: 10 / self.a > 1'
    ]


def test_evaluation_ends_with_its_budget() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "maxItems": 2000}
    props = struct(a=ruled(numbers, "self.all(x, self.all(y, x + y >= 0))", "true"))
    [problem] = violations(props, {"a": list(range(2000))})
    assert "no further validation rules will be run due to call cost exceeds limit for rule" in problem


def test_rules_that_cost_nothing_are_bounded_too() -> None:
    props = {"type": "array", "items": ruled({"type": "integer"}, *["true"] * 100)}
    with pytest.raises(TooExpensiveError):
        violations(props, [1] * 10_000)


def test_rules_whose_cost_is_low_for_their_time_are_bounded_by_time() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "maxItems": 20_000}
    tree = rule_tree(ruled(numbers, *["self == self"] * 300))
    assert tree is not None
    with pytest.raises(TooExpensiveError, match="take too long"):
        RuleEvaluation(Budget(), seconds=0.05).validate(tree, list(range(20_000)))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (".a", "a"),
        (".m['x.y']", "m[x.y]"),
        (".m.key", "m[key]"),
        (".m['it\\'s']", "m[it's]"),
        ("['a']", "a"),
        ("", ""),
    ],
)
def test_field_path_is_found_in_the_schema(text: str, path: str) -> None:
    assert find_field(text, struct(a=TEXT, m={"type": "object", "additionalProperties": TEXT}))[0] == path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "expected [ or . but got: a"),
        (".b", "does not refer to a valid field"),
        (".a.b", "does not refer to a valid field"),
        (".", "unexpected end of JSON path"),
        ("[a]", "expected single quoted string but got a"),
        ("['a'", "unexpected end of JSON path"),
        ("['a'.", "expected ] but got ."),
        ("['\\q']", "invalid string literal: invalid escape char \\q"),
    ],
)
def test_wrong_field_path_is_refused_in_upstream_words(text: str, why: str) -> None:
    with pytest.raises(ValueError) as refusal:
        find_field(text, struct(a=TEXT))
    assert str(refusal.value) == why
