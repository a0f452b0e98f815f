"""Commands run in this process, which is quicker than in one of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from podlife.cli.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Run = Callable[..., Said]
Refused = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_it(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["podlife", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        code = ended.value.code
        return Said(code if isinstance(code, int) else 0, said.out, said.err)

    return run_it


@pytest.fixture
def refused(run: Run) -> Refused:
    """What a command says that is refused as a wrong use, in one line."""

    def run_it(*arguments: str) -> str:
        said = run(*arguments)
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1), said.err
        return said.err

    return run_it
