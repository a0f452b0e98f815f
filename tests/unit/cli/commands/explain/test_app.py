"""What is wrong with `podlife explain` and `podlife stuck` is said in one line, before anything is connected to."""

from __future__ import annotations

import sys

import pytest

from podlife.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "pod", "Web"], "'Web' is no name of a pod"),
        (["explain", "pod/Web"], "'Web' is no name of a pod"),
        (["explain", "pods", "Web"], "'Web' is no name of a pod"),
        (["explain", "no/Web", "-o", "json"], "'Web' is no name of a node"),
        (["explain", "web/pod"], "there is no command 'web'"),
        (["explain", "Web"], "'Web' is no name of a pod"),
        (["explain", "Web", "-o", "json"], "'Web' is no name of a pod"),
        (["explain", "pdo", "web"], "there is no command 'pdo'"),
        (["explain", "pod", "web", "-o", "xml"], "'xml' is no way to show it: there are text, json, yaml"),
        (["explain", "pod", "web", "-n", "a_b"], "'a_b' is no name of a namespace"),
        (["explain", "node", "a/b"], "'a/b' is no name of a node"),
        (["explain", "pod"], "NAME is missing"),
        (["explain", "pod", "web", "--archive="], "--archive is empty: give it a value"),
        (["explain", "pod", "web", "--archive=ftp://x"], "is neither a folder nor a bucket"),
        (["stuck", "-A", "-n", "x"], "exclude each other"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["podlife", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1), said.err
    assert words in said.err
