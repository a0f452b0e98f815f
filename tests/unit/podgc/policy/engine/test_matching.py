"""Names with wildcards, matched with texts that whoever may write a pod has chosen."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.policy import Policy
from podlife.podgc.policy.engine.matching import Matcher
from podlife.podgc.policy.model import Rule, Selector
from tests.unit.podgc.policy.engine.test_classifier import asked, pod

HOSTILE = """
from podlife.podgc import Policy
from podlife.podgc.policy.engine.matching import Matcher
from podlife.podgc.policy.model import Rule, Selector

matcher = Matcher(Policy((Rule("r", Selector(reasons=("*Out*Of*cpu", "*a*a*a*a*b", "?*?*?*?*x")), keep=None),)))
for text in ("OutOf" * 4_000, "a" * 20_000, "Out" * 7_000, "cpu" * 7_000):
    assert not matcher.facts_of({}, {}, "", "Failed", text, frozenset()).bits
"""


def takes(pattern: str, reason: str) -> bool:
    matcher = Matcher(Policy((Rule("r", Selector(reasons=(pattern, "never-this"))),)))
    return bool(matcher.facts_of({}, {}, "", "Failed", reason, frozenset()).bits)


@pytest.mark.parametrize(
    ("pattern", "reason", "is_taken"),
    [
        ("OutOf*", "OutOfcpu", True),
        ("*Out*Of*cpu", "Out Of the cpu", True),
        ("*Out*Of*cpu", "Out Of the cpus", False),
        ("?", "", False),
        ("*", "", True),
        ("a*b", "a\nb", True),
        ("Out", "Out\n", False),
        # No classes: these are letters like others.
        ("[ab]", "a", False),
        ("[ab]*", "[ab] and more", True),
        ("a.c", "abc", False),
    ],
)
def test_only_stars_and_question_marks_mean_something(pattern: str, reason: str, is_taken: bool) -> None:
    assert takes(pattern, reason) is is_taken


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=12))
def test_a_pattern_takes_what_a_shells_would(pattern: str, reason: str) -> None:
    assert takes(pattern, reason) == fnmatchcase(reason, pattern)


def test_long_texts_cost_no_more_than_their_length() -> None:
    """In a process of its own, which can be ended: with backtracking this takes hours."""
    subprocess.run([sys.executable, "-c", HOSTILE], check=True, timeout=120)


def test_what_is_known_of_long_texts_is_not_kept() -> None:
    matcher = Matcher(Policy((Rule("r", Selector(reasons=("x*",))),)))
    for number in range(50):
        assert matcher.facts_of({}, {}, "", "Failed", f"x{number}" + "y" * 20_000, frozenset()).bits
    assert not matcher._facts
    assert matcher.facts_of({}, {}, "", "Failed", "x", frozenset()) is matcher.facts_of(
        {}, {}, "", "Failed", "x", frozenset()
    )


# What is told of a pod's protection by people who read it


def test_a_time_that_cannot_be_read_protects_for_ever_and_says_why() -> None:
    told = asked(Policy(), pod("a", annotations={KEEP_UNTIL: "tomorrow"})).protected_by
    assert told == f"annotation {KEEP_UNTIL}, forever: invalid time"
