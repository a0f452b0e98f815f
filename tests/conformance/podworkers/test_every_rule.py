"""Every rule of the pod workers is carried by a test of this package that names it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

HERE = Path(__file__).parent
RULE = re.compile(r"\bPW-\d\d\d?\b")


def rules() -> list[str]:
    return (HERE / "rules.txt").read_text(encoding="utf-8").split()


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


def test_no_rule_is_without_a_test() -> None:
    assert [rule for rule in rules() if rule not in named()] == []


def test_no_test_names_a_rule_that_there_is_not() -> None:
    assert named() <= set(rules())


def test_no_rule_is_listed_twice() -> None:
    assert len(rules()) == len(set(rules()))
