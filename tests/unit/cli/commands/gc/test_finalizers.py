"""Mistakes in naming finalizers and pods, told before anything is connected to."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from podlife.cli.app import app

ONE = "example.com/one"
REMOVE = ("finalizers", "remove")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*REMOVE, "p"), "name what may be taken off with --allow"),
        ((*REMOVE, "p", "--allow", ""), "--allow is empty"),
        ((*REMOVE, "p", "--allow", "example.com/*"), "there are no patterns"),
        ((*REMOVE, "p", "--allow", "not a name"), "is no name of a finalizer"),
        ((*REMOVE, "P", "--allow", ONE), "is no name of a pod"),
        ((*REMOVE, "p", "--allow", ONE, "-n", ""), "-n is empty"),
        ((*REMOVE, "p", "--allow", ONE, "--quarantine", "-1s"), "lies in the past"),
        (("finalizers", "-o", "yaml"), "is no way to show it"),
        (("finalizers", "-n", "a", "-A"), "exclude each other"),
        (("finalizers", "-n", "a", *REMOVE[1:], "p", "--allow", ONE), "options of remove stand after it"),
        (("sweep", "--yes", "--remove-finalizer", "a/b/c"), "is no name of a finalizer"),
        (("run", "--remove-finalizer", "example.com/?"), "there are no patterns"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_done(words: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(app, ["gc", *words])
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.output.replace("│", " ").split())
