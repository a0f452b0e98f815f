"""What a user is told to type works where they stand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podlife.cli.commands.up.lines import command_for, program
from podlife.localcluster.state_dir import StateDir


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment as `make up` makes it."""
    made = tmp_path / "checkout" / ".venv" / "bin" / "podlife"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(made.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path))
    return made


def test_on_path_it_is_called_by_its_name(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "podlife"


def test_not_on_path_it_is_called_by_the_way_to_it(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(script.parents[2])
    assert program() == ".venv/bin/podlife"
    monkeypatch.chdir("/")
    assert program().endswith("/checkout/.venv/bin/podlife")


def test_another_of_its_name_on_path_is_not_taken_for_it(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = script.parents[3] / "podlife"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.chdir(script.parents[2])
    assert program() == ".venv/bin/podlife"


def test_a_command_names_the_folder_unless_it_is_the_default(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert command_for(StateDir(tmp_path / "podlife"), "down") == "podlife down"
    assert command_for(StateDir(Path("/a b")), "down") == "podlife down --data '/a b'"
