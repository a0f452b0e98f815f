"""Discouraged phrases are counted where people read them, and may only become fewer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import check_prose


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("Plain.\n", encoding="utf-8")
    return tmp_path


def run(tree: Path, limits: dict[str, int], *arguments: str) -> int:
    file = tree / "limits.json"
    file.write_text(json.dumps(limits), encoding="utf-8")
    return check_prose.main(list(arguments), tree, file)


def limits_of(tree: Path) -> dict[str, int]:
    read: dict[str, int] = json.loads((tree / "limits.json").read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("source", ["x = 1  # done anew\n", '"""Done\nanew."""\n', "x = f'done {1} anew'\n"])
def test_comments_docstrings_and_strings_are_counted(
    tree: Path, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    (tree / "src" / "a.py").write_text(source, encoding="utf-8")
    assert run(tree, {}) == 1
    assert capsys.readouterr().out.startswith(
        "'anew' occurs 1 times, limit 0; write instead: again: src/a.py:"
    )


def test_names_in_code_are_not_counted(tree: Path) -> None:
    (tree / "src" / "a.py").write_text("anew = 1\nprint(anew)\n", encoding="utf-8")
    assert run(tree, {}) == 0


def test_the_line_is_that_of_the_phrase_even_if_a_line_break_splits_it(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "docs" / "a.md").write_text("# Title\n\nThe caller is\ntold.\n", encoding="utf-8")
    assert run(tree, {}) == 1
    assert "docs/a.md:3" in capsys.readouterr().out


def test_ordinary_english_is_not_counted(tree: Path) -> None:
    (tree / "README.md").write_text("There is no pod. The node is no longer ready.\n", encoding="utf-8")
    assert run(tree, {}) == 0


def test_a_count_within_its_limit_passes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "README.md").write_text("Whoever asks. Whoever waits.\n", encoding="utf-8")
    assert run(tree, {"whoever": 2}) == 0
    assert capsys.readouterr().out == ""
    assert run(tree, {"whoever": 1}) == 1


def test_many_places_are_shown_on_one_line(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "README.md").write_text("anew\n" * 7, encoding="utf-8")
    assert run(tree, {}) == 1
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert out.endswith("README.md:5 and 2 more\n")


def test_tighten_lowers_limits_and_never_raises_one(tree: Path) -> None:
    (tree / "README.md").write_text("anew, whoever, whoever\n", encoding="utf-8")
    assert run(tree, {"anew": 5, "whoever": 1}, "--tighten") == 1
    assert limits_of(tree)["anew"] == 1
    assert limits_of(tree)["whoever"] == 1


def test_tighten_gives_a_phrase_without_a_limit_its_count(tree: Path) -> None:
    (tree / "README.md").write_text("anew\n", encoding="utf-8")
    assert run(tree, {}, "--tighten") == 0
    assert limits_of(tree)["anew"] == 1
    assert limits_of(tree)["nobody"] == 0


def test_every_phrase_has_a_limit() -> None:
    limits = json.loads(check_prose.LIMITS.read_text(encoding="utf-8"))
    assert set(limits) == set(check_prose.PHRASES)
