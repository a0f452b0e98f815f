"""Whether one selector takes all that another takes: a yes is always right."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.selectors import LabelSelector, parse_label_selector
from podlife.podgc.policy.engine.matching import Matcher
from podlife.podgc.policy.model import Policy, Rule, Selector
from podlife.podgc.policy.parse.coverage import covers, pattern_covers

PATTERNS = st.text("ab*?", max_size=6)


def matches(pattern: str, name: str) -> bool:
    signs = (".*" if sign == "*" else "." if sign == "?" else re.escape(sign) for sign in pattern)
    return re.fullmatch("".join(signs), name) is not None


@given(PATTERNS, PATTERNS, st.text("abc", max_size=6))
def test_a_pattern_that_covers_another_matches_all_that_it_matches(wide: str, narrow: str, name: str) -> None:
    if pattern_covers(wide, narrow) and matches(narrow, name):
        assert matches(wide, name)


@given(PATTERNS, st.text("abc", max_size=6))
def test_about_a_name_without_signs_it_knows_everything(wide: str, name: str) -> None:
    assert pattern_covers(wide, name) == matches(wide, name)


LABELS = st.lists(
    st.sampled_from(
        ["a", "!a", "a=1", "a!=1", "a in (1,2)", "a notin (1,2)", "a>1", "a<2", "b", "b=1", "!b"]
    ),
    min_size=1,
    max_size=3,
).map(lambda parts: parse_label_selector(",".join(parts)))


@given(LABELS, LABELS, st.dictionaries(st.sampled_from("ab"), st.sampled_from("0123")))
def test_labels_that_are_covered_are_selected_by_both(
    wide: LabelSelector, narrow: LabelSelector, labels: dict[str, str]
) -> None:
    one, other = Selector(labels=wide), Selector(labels=narrow)
    if covers(one, other) and other.labels is not None and other.labels.matches(labels):
        assert one.labels is not None
        assert one.labels.matches(labels)


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        (Selector(), Selector(phases=("Failed",)), True),
        (Selector(phases=("Failed",)), Selector(), False),
        (Selector(phases=("Failed", "Succeeded")), Selector(phases=("Failed",)), True),
        (Selector(phases=("Pending", "Running", "Succeeded", "Failed", "Unknown")), Selector(), True),
        (Selector(namespaces=("*",)), Selector(), True),
        (Selector(namespaces=("team-*", "ci")), Selector(namespaces=("ci", "team-a*")), True),
        (Selector(namespaces=("team-*",)), Selector(namespaces=("ci", "team-a")), False),
        (Selector(exit_codes=frozenset((1, 2))), Selector(exit_codes=frozenset((1,))), True),
        (Selector(exit_codes=frozenset((1,))), Selector(exit_codes=frozenset((1, 2))), False),
        (Selector(namespace_labels=parse_label_selector("a=1")), Selector(), False),
        (Selector(nodes=("a",)), Selector(namespaces=("a",)), False),
    ],
)
def test_selectors_cover_each_other_in_all_they_say(
    wide: Selector, narrow: Selector, is_covered: bool
) -> None:
    assert covers(wide, narrow) is is_covered


NAMES = st.lists(st.text("ab*?", min_size=1, max_size=3), max_size=2).map(tuple)
SELECTORS = st.builds(
    Selector,
    namespaces=NAMES,
    namespace_labels=st.none() | LABELS,
    labels=st.none() | LABELS,
    owner_kinds=st.lists(st.sampled_from(["Job", "J*", "none", "*"]), max_size=2).map(tuple),
    nodes=NAMES,
    phases=st.lists(st.sampled_from(["Failed", "Succeeded", "Running"]), max_size=2).map(tuple),
    reasons=st.lists(st.sampled_from(["Evicted", "E*", "*"]), max_size=2).map(tuple),
    exit_codes=st.frozensets(st.integers(0, 2), max_size=2),
)
PODS = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("0123")),
        "annotations": st.just({}),
        "owner_kind": st.sampled_from(["Job", "ReplicaSet", "none"]),
        "phase": st.sampled_from(["Failed", "Succeeded", "Running"]),
        "reason": st.sampled_from(["", "Evicted", "Error"]),
        "exit_codes": st.frozensets(st.integers(0, 2), max_size=2),
    }
)
FIELDS = [field.name for field in dataclasses.fields(Selector)]


def takes(selector: Selector, pod: dict[str, Any], namespace: str, labels: dict[str, str], node: str) -> bool:
    matcher = Matcher(Policy(rules=(Rule("a", selector, ttl_seconds=1),)))
    place, _ = matcher.place_of(matcher.facts_of(**pod), matcher.namespace_bits(namespace, labels), node)
    return place == 0


@given(
    SELECTORS,
    SELECTORS,
    st.sets(st.sampled_from(FIELDS)),
    PODS,
    st.text("ab", min_size=1, max_size=3),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from("0123")),
    st.text("ab", max_size=3),
)
def test_a_pod_of_a_selector_that_is_covered_is_the_others_too(
    narrow: Selector,
    other: Selector,
    mixed: set[str],
    pod: dict[str, Any],
    namespace: str,
    labels: dict[str, str],
    node: str,
) -> None:
    """As the collector selects pods: what is refused because an earlier rule takes everything is refused rightly."""
    # Two that have nothing in common never cover each other.
    wide = dataclasses.replace(narrow, **{name: getattr(other, name) for name in mixed})
    if covers(wide, narrow) and takes(narrow, pod, namespace, labels, node):
        assert takes(wide, pod, namespace, labels, node)
