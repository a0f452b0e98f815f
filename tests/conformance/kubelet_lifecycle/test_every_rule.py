"""Every rule in `rules.txt` is carried by a test of this package that names it. The rules in `not_yet.txt` are those
whose code is not written: together the two are all rules there are, and the second list only becomes shorter.

Of the rules in `acting_half.txt` only the deciding half is done and tested here; the half that acts belongs to the
agent, and whoever writes that takes the rule out of this list."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

HERE = Path(__file__).parent
RULE = re.compile(r"\b(?:KL|KC|KO|ST|SM|PL|RS|RB|PH|PHR|CS|PR)-\d\d[a-z]?\b")
ALL_RULES = 258
# Lower them with every rule that is done; they never grow.
ACTING_HALF_AT_MOST = 16
NOT_YET_AT_MOST = 11


def listed(name: str) -> list[str]:
    return (HERE / name).read_text(encoding="utf-8").split()


def texts() -> Iterator[str]:
    """What names a rule: the docstring of a test, or the id of one of its parameter sets."""
    for path in sorted(HERE.glob("test_*.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_"):
                yield test.__doc__ or ""
                yield from parameter_ids(test)


def parameter_ids(test: FunctionType) -> Iterator[str]:
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            yield from (str(each.id) for each in mark.args[1] if isinstance(each, type(pytest.param())))


def named() -> set[str]:
    return {rule for text in texts() for rule in RULE.findall(text)}


def test_no_rule_that_is_done_is_without_a_test() -> None:
    assert [rule for rule in listed("rules.txt") if rule not in named()] == []


def test_no_test_names_a_rule_that_is_not_listed_as_done() -> None:
    assert sorted(named() - set(listed("rules.txt"))) == []


def test_every_rule_is_in_one_of_the_two_lists() -> None:
    rules = [*listed("rules.txt"), *listed("not_yet.txt")]
    assert len(rules) == len(set(rules)) == ALL_RULES


def test_a_rule_that_is_decided_here_and_acted_on_elsewhere_is_done_by_half() -> None:
    halves = listed("acting_half.txt")
    assert set(halves) <= set(listed("rules.txt"))
    assert len(halves) == len(set(halves)) <= ACTING_HALF_AT_MOST


def test_what_is_not_done_yet_only_becomes_less() -> None:
    assert len(listed("not_yet.txt")) <= NOT_YET_AT_MOST
