"""docs/out-of-service.md without a cluster: the fence check that it has people save says what it should, and the
commands that it has them type come as far as the server. `tests/real` types all of them while a node dies."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from podlife.nodehealth.out_of_service import CommandCheck, FenceResult, FenceSubject
from tests.component.explain.test_pages import blocks, typed
from tests.kit.real_parts import ROOT
from tests.unit.cli.test_main import podlife

PAGE = (ROOT / "docs" / "out-of-service.md").read_text(encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the folder where a reader has saved it, with the power of one machine."""
    monkeypatch.chdir(tmp_path)
    Path("is-off").write_text(blocks(PAGE, "sh")[0], encoding="utf-8")
    Path("power").mkdir()
    [chmod] = [line for line in typed(PAGE) if line.startswith("chmod ")]
    subprocess.run(shlex.split(chmod), check=True, timeout=10)
    assert os.access("is-off", os.X_OK)
    return tmp_path / "power" / "n1"


async def test_the_fence_check_of_the_page_confirms_only_a_machine_that_is_off(saved: Path) -> None:
    check = CommandCheck(["./is-off"], seconds=20)

    async def asked() -> FenceResult:
        return (await check.ask(FenceSubject("n1", "u1", "", ("10.0.0.1",)))).result

    assert await asked() is FenceResult.NOT_DEAD, "nobody knows"
    for text, result in (
        ("on\n", FenceResult.NOT_DEAD),
        ("off\n", FenceResult.DEAD),
        ("", FenceResult.NOT_DEAD),
    ):
        saved.write_text(text)
        assert await asked() is result


@pytest.mark.usefixtures("saved")
def test_the_commands_of_the_page_come_as_far_as_the_server() -> None:
    lines = [shlex.split(line) for line in typed(PAGE) if line.startswith("podlife ")]
    assert len(lines) == 2
    for words in lines:
        result = podlife(*words[1:], "--leader-elect=false", "--server=https://127.0.0.1:1")
        assert result.returncode == 1
        assert "cannot be reached" in result.stderr, result.stderr
