"""Patterns in expressions: RE2 with Go's messages, and matches whose time is counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podlife.api import patterns
from podlife.api.cel.errors import EvaluationError
from podlife.api.cel.values import Meter

# Instructions of the automaton times characters, in one step of work: some 100 million of them take a second.
_STEPS = 100


def compile_pattern(pattern: str) -> Any:
    """Raises EvaluationError with Go's text."""
    try:
        return patterns.compile_pattern(pattern)
    except (ValueError, UnicodeError) as error:
        raise EvaluationError(str(error)) from None


def find(meter: Meter, pattern: str, text: str) -> Iterator[Any]:
    """The matches, one by one. Upstream's cost knows only the length of a pattern, which `{1000}` multiplies."""
    return _matches(meter, compile_pattern(pattern), text)


def _matches(meter: Meter, compiled: Any, text: str) -> Iterator[Any]:
    meter.work(len(text) * compiled.programsize // _STEPS)
    for match in compiled.finditer(text):
        yield match
        # The search for the next one may read to the end again.
        meter.work((len(text) - match.end()) * compiled.programsize // _STEPS)
