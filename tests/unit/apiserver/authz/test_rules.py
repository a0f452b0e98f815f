"""Rules: what they allow, and the permissions they consist of."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.authz import Attributes, RuleSet, count_permissions, describe, permissions
from podlife.apiserver.authz.rules import _Rule


def rule(verbs: str, resources: str, groups: str = "", names: str = "") -> dict[str, Any]:
    found = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    return {**found, "resourceNames": names.split(",")} if names else found


def urls(verbs: str, paths: str) -> dict[str, Any]:
    return {"verbs": verbs.split(","), "nonResourceURLs": paths.split(",")}


@pytest.mark.parametrize(
    ("granted", "asked", "is_allowed"),
    [
        (rule("get", "pods"), Attributes("get", "", "pods"), True),
        (rule("get", "pods"), Attributes("list", "", "pods"), False),
        (rule("get", "pods"), Attributes("get", "apps", "pods"), False),
        (rule("get", "pods"), Attributes("get", "", "pods", "log"), False),
        (rule("*", "*", "*"), Attributes("get", "x", "y", "z", "n", "m"), True),
        (rule("*", "*", "*"), Attributes("get", path="/x"), False),
        (rule("get", "pods/log"), Attributes("get", "", "pods", "log"), True),
        (rule("get", "*/log"), Attributes("get", "", "pods", "log"), True),
        (rule("get", "*/log"), Attributes("get", "", "pods"), False),
        # As upstream: it is no pattern.
        (rule("get", "pods/*"), Attributes("get", "", "pods", "log"), False),
        (rule("get", "maps", names="a,b"), Attributes("get", "", "maps", name="b"), True),
        (rule("get", "maps", names="a,b"), Attributes("get", "", "maps", name="c"), False),
        (rule("get", "maps", names="a,b"), Attributes("get", "", "maps"), False),
        (urls("get", "/a"), Attributes("get", path="/a"), True),
        (urls("get", "/a"), Attributes("get", path="/a/"), False),
        (urls("get", "/a"), Attributes("post", path="/a"), False),
        (urls("get", "/a/*"), Attributes("get", path="/a/b/c"), True),
        (urls("get", "/a/*"), Attributes("get", path="/a"), False),
        (urls("get", "/a*b"), Attributes("get", path="/axb"), False),
        (urls("*", "*"), Attributes("get", path="/x"), True),
        (urls("*", "*"), Attributes("get", "", "pods"), False),
    ],
)
def test_a_rule_allows_what_upstreams_would(
    granted: dict[str, Any], asked: Attributes, is_allowed: bool
) -> None:
    assert RuleSet([granted]).allows(asked) is is_allowed


@pytest.mark.parametrize("asked", [Attributes("get", "", "pods", name="n7"), Attributes("put", "", "pods")])
def test_rules_for_other_names_are_not_looked_at(monkeypatch: pytest.MonkeyPatch, asked: Attributes) -> None:
    looks: list[Attributes] = []
    allows = _Rule.allows

    def counted(one: _Rule, asked: Attributes) -> bool:
        looks.append(asked)
        return allows(one, asked)

    monkeypatch.setattr(_Rule, "allows", counted)
    rules = RuleSet([rule("get", "pods", names=f"n{number}") for number in range(1000)])
    assert rules.allows(asked) is (asked.verb == "get")
    assert len(looks) <= 1


def test_a_rule_of_many_resources_and_names_takes_no_more_room_than_both() -> None:
    many = ",".join(f"x{number}" for number in range(300))
    rules = RuleSet([rule("get", many, names=many)])
    assert sum(len(by_name) for by_name in rules._by_resource.values()) == 300
    assert rules.allows(Attributes("get", "", "x7", name="x299"))
    assert not rules.allows(Attributes("get", "", "x7", name="y"))
    assert not rules.allows(Attributes("get", "", "x7"))


def test_permissions_are_counted_before_they_are_listed() -> None:
    rules = [rule("get,list", "pods,pods/log", ",apps", "a,b,c"), rule("get", "x"), urls("get,put", "/a,/b")]
    assert count_permissions(rules) == len(list(permissions(rules))) == 24 + 1 + 4
    many = ["x"] * 10_000
    assert count_permissions([{"verbs": many, "apiGroups": many, "resources": many}]) == 10**12


def test_every_rule_allows_its_own_permissions() -> None:
    rules = [rule("get,*", "pods,*/log,*", ",*", "a"), urls("get", "/a*,*"), rule("*", "*", "*")]
    for each in rules:
        assert all(RuleSet([each]).allows(one) for one in permissions([each]))


def test_missing_permissions_are_listed_by_resource_in_order() -> None:
    rules = [rule("get,list", "pods", "apps"), rule("get", "b/c", names="n"), urls("get,put", "/x")]
    assert describe(permissions(rules)).splitlines() == [
        '{APIGroups:[""], Resources:["b/c"], ResourceNames:["n"], Verbs:["get"]}',
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
        '{NonResourceURLs:["/x"], Verbs:["put"]}',
    ]


def test_a_list_of_missing_permissions_is_bounded() -> None:
    lines = describe(Attributes("get", "", f"r{number}") for number in range(10_000)).splitlines()
    assert len(lines) == 501
    assert lines[-1] == "... and 9500 more"
