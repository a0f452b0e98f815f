"""Whether every rule of a suite is carried by a test that names it: in its docstring, or in the id of a parameter set.

A suite keeps the list of its rules in `rules.txt` beside its tests, and says what its rules look like.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest

__all__ = ["Suite"]


class Suite:
    def __init__(self, file: str, package: str | None, rule: str) -> None:
        self._folder = Path(file).parent
        self._package = package
        self._rule = re.compile(rf"\b(?:{rule})\b")

    @cached_property
    def rules(self) -> list[str]:
        return (self._folder / "rules.txt").read_text(encoding="utf-8").split()

    @cached_property
    def named(self) -> set[str]:
        return {rule for text in self._texts() for rule in self._rule.findall(text)}

    def check(self) -> None:
        """No rule is without a test, no test names a rule that there is not, and none is listed twice."""
        assert [rule for rule in self.rules if rule not in self.named] == []
        assert self.named <= set(self.rules)
        assert len(self.rules) == len(set(self.rules))

    def _texts(self) -> Iterator[str]:
        for path in sorted(self._folder.glob("test_*.py")):
            module = importlib.import_module(f"{self._package}.{path.stem}")
            for name, test in inspect.getmembers(module, inspect.isfunction):
                if name.startswith("test_"):
                    yield test.__doc__ or ""
                    yield from _parameter_ids(test)


def _parameter_ids(test: FunctionType) -> Iterator[str]:
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            yield from (str(each.id) for each in mark.args[1] if isinstance(each, type(pytest.param())))
