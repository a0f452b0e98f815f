"""Looks up the behaviour rules of docs/behaviour."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "docs" / "behaviour"
_RULE = re.compile(r"\*\*([A-Z]{2,3}-\d{2,3}[a-z]?)\*\*")
_NOT_COVERED = re.compile(r"^- ([A-Z]{2,3}-\d{2,3}[a-z]?): \S", re.MULTILINE)


def pages() -> list[Path]:
    return sorted(path for path in CATALOGUE.glob("*.md") if path.name != "README.md")


@cache
def rules() -> tuple[str, ...]:
    """The names of all rules in the order of the pages, including duplicates."""
    return tuple(rule for page in pages() for rule in _RULE.findall(page.read_text(encoding="utf-8")))


@cache
def families() -> frozenset[str]:
    return frozenset(rule.partition("-")[0] for rule in rules())


@cache
def groups() -> frozenset[str]:
    """Names without a letter that stand for all rules with one: RS-06 for RS-06a, RS-06b …"""
    return frozenset(rule[:-1] for rule in rules() if rule[-1].isalpha())


@cache
def not_covered() -> frozenset[str]:
    """Rules that the index lists as not covered by a test, with a reason."""
    section = (CATALOGUE / "README.md").read_text(encoding="utf-8").split("## Not covered by a test")[1]
    return frozenset(_NOT_COVERED.findall(section))


@cache
def _names() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(families()))})-\d+[a-z]?\b")


def named_in(text: str) -> list[str]:
    return _names().findall(text)
