"""What a shell is offered while a word is typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

KUBECONFIG = """
contexts: [{name: dev, context: {cluster: c}}, {name: prod, context: {cluster: c}}]
clusters: [{name: near, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: eve, user: {}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    return path


def offered(line: str, kubeconfig: Path | str) -> list[str]:
    """As bash asks for it: the last word is the one that is typed."""
    words = line.split(" ")
    environment = {
        "_PODLIFE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "KUBECONFIG": str(kubeconfig),
    }
    program = "import sys; sys.argv = ['podlife']; from podlife.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environment,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("podlife stuck --context ", ["dev", "prod"]),
        ("podlife stuck --context p", ["prod"]),
        ("podlife gc plan --cluster ", ["near"]),
        ("podlife gc plan --user ", ["eve"]),
        ("podlife gc plan -o ", ["table", "wide", "json", "yaml", "name"]),
        ("podlife status -o y", ["yaml"]),
        ("podlife up --runtime c", ["containerd"]),
        ("podlife controllers run --controllers deployment,stateful", ["deployment,statefulset"]),
    ],
)
def test_real_values_are_offered_where_there_are_some(line: str, words: list[str], kubeconfig: Path) -> None:
    assert offered(line, kubeconfig) == words


@pytest.mark.parametrize("line", ["podlife explain pod ", "podlife stuck --context "])
def test_nothing_is_offered_and_nothing_said_where_nobody_answers(
    line: str, kubeconfig: Path, tmp_path: Path
) -> None:
    assert offered(f"{line}z", kubeconfig) == []
    assert offered(line, tmp_path / "none") == []
