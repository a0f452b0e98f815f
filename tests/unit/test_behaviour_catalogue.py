"""docs/behaviour has every rule that code and tests name, and every rule of it has its test."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.kit.behaviour_catalogue import (
    CATALOGUE,
    ROOT,
    families,
    groups,
    named_in,
    not_covered,
    pages,
    rules,
)

# A rule that disappears by mistake is missed by no other test: its name would disappear with it.
ALL_RULES = 829
SUFFIXES = {".py", ".md", ".yaml"}


def files(folder: str) -> list[Path]:
    return sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)


def test_no_rule_is_defined_twice_or_lost() -> None:
    assert [rule for rule, times in Counter(rules()).items() if times > 1] == []
    assert len(rules()) == ALL_RULES


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_rule_has_an_anchor_of_its_name(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    anchored = re.findall(r'<a id="([^"]+)"></a>\*\*([^*]+)\*\*', text)
    assert all(anchor == rule.lower() for anchor, rule in anchored)
    assert [rule for _, rule in anchored] == [rule for rule in rules() if f"**{rule}**" in text]
    assert len(re.findall(r'\bid="', text)) == len(anchored)


@pytest.mark.parametrize("folder", ["src", "tests", "docs", "bench", "examples", "tools"])
def test_every_rule_that_is_named_exists(folder: str) -> None:
    known = {*rules(), *groups()}
    unknown = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in files(folder)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for name in named_in(line)
        if name not in known
    ]
    assert unknown == []


def test_every_rule_is_named_by_a_test_or_listed_with_a_reason() -> None:
    named = {
        name
        for path in files("tests")
        if path.name.startswith("test_")
        for name in named_in(path.read_text(encoding="utf-8"))
    }
    assert sorted(set(rules()) - named - not_covered()) == []
    assert not_covered() <= set(rules()) - named


def test_the_index_has_every_page_and_every_family() -> None:
    index = (CATALOGUE / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == {page.name for page in pages()}
    for page in pages():
        (row,) = (line for line in index.splitlines() if f"]({page.name})" in line)
        listed = row.rsplit("|", 2)[1].strip().split(", ")
        assert sorted(listed) == sorted(
            {rule.partition("-")[0] for rule in rules() if f"**{rule}**" in page.read_text()}
        )
    assert (
        set(re.findall(r"^\| ([A-Z]{2,3}) \|", index, re.M))
        | set(re.findall(r"\| \| ([A-Z]{2,3}) \|", index))
        == families()
    )


def test_no_rule_number_stands_alone_in_the_sources() -> None:
    """Half a sentence beside it says what the rule demands."""
    alone = re.compile(r'(?:"""|# )(?:[A-Z]{2,3}-\d+[a-z]?(?:,| and| to)? ?)+\.?(?:"""|$)')
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files("src")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if named_in(line) and alone.search(line)
    ]
    assert bare == []
