"""Errors of CEL with the texts of cel-go, and how they point into the source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_LONGEST_SNIPPET = 16384
_MOST_ISSUES = 100


class CelError(Exception):
    """An expression does not compile, or its evaluation fails. The text is upstream's."""

    # What the evaluation has cost until it failed.
    cost = 0


class EvaluationError(CelError):
    """An error value of CEL: `||`, `&&` and the macros built on them may absorb it."""


class CostLimitExceededError(CelError):
    """The evaluation was stopped. No operator absorbs this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Issue(NamedTuple):
    """What is wrong at an offset of the source; -1 for the whole of it."""

    position: int
    message: str


def display(source: str, issues: Iterable[Issue]) -> str:
    """All issues in the order of the source, as cel-go prints them."""
    placed = sorted(issues, key=lambda issue: issue.position)
    lines = [_display_one(source, issue) for issue in placed[:_MOST_ISSUES]]
    if len(placed) > _MOST_ISSUES:
        lines.append(f"{len(placed) - _MOST_ISSUES} more errors were truncated")
    return "\n".join(lines)


def _display_one(source: str, issue: Issue) -> str:
    if issue.position < 0:
        return f"ERROR: <input>:-1:0: {issue.message}"
    if not source:
        return f"ERROR: <input>:1:0: {issue.message}"
    before = source[: issue.position]
    line = before.count("\n") + 1
    column = issue.position - (before.rfind("\n") + 1)
    text = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
    snippet = source.split("\n")[line - 1].replace("\t", " ")
    if len(snippet.encode(errors="surrogatepass")) > _LONGEST_SNIPPET:
        return text
    # cel-go points at wide characters with wide dots.
    dots = "".join("." if ord(char) < 128 else "\uff0e" for char in snippet[:column])
    arrow = "\uff3e" if column < len(snippet) and ord(snippet[column]) >= 128 else "^"
    return f"{text}\n | {snippet}\n | {dots}{arrow}"
