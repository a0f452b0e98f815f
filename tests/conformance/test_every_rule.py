"""Every rule of a conformance suite is named by one of its tests: in a docstring, or in the id of a parameter set."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from tests.kit.behaviour_catalogue import families, named_in, not_covered, rules

SUITES = {
    "graceful_deletion": {"GD", "EV"},
    "kubelet": {"KL", "KC", "KO", "ST", "SM", "PL", "RS", "RB", "PH", "PHR", "CS", "PR"},
    "nodehealth": {"NL", "RQ", "TE", "DT", "TN"},
    "podcontrol": {"PC", "CR", "EX", "AP", "AV", "RK"},
    "podgc": {"GC"},
    "podworkers": {"PW", "HC"},
}


def texts(suite: str) -> Iterator[str]:
    for path in sorted((Path(__file__).parent / suite).glob("test_*.py")):
        module = importlib.import_module(f"{__package__}.{suite}.{path.stem}")
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_"):
                yield test.__doc__ or ""
                yield from parameter_ids(test)


def parameter_ids(test: FunctionType) -> Iterator[str]:
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            yield from (str(each.id) for each in mark.args[1] if isinstance(each, type(pytest.param())))


def family(rule: str) -> str:
    return rule.partition("-")[0]


@pytest.mark.parametrize("suite", SUITES)
def test_every_rule_has_its_test_and_every_name_is_a_rule(suite: str) -> None:
    expected = {rule for rule in rules() if family(rule) in SUITES[suite]}
    named = {name for text in texts(suite) for name in named_in(text) if family(name) in SUITES[suite]}
    assert sorted(expected - named - not_covered()) == []
    assert sorted(named - expected) == []


def test_every_family_has_its_suite() -> None:
    assert families() == set().union(*SUITES.values())
