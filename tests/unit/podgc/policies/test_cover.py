"""Whether one selector takes all that another takes: a yes is always right."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.selectors import parse_label_selector
from podlife.podgc.policies.model import Selector
from podlife.podgc.policies.reading_cover import covers, pattern_covers

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
    wide: object, narrow: object, labels: dict[str, str]
) -> None:
    one, other = Selector(labels=wide), Selector(labels=narrow)  # type: ignore[arg-type]
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
