"""docs/testing.md and the examples beside it, as a reader runs them: in a pytest of their own, without this project's
settings. Those that need kopf or the official client run where these are installed (`make test-real`)."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.real_parts import ROOT

EXAMPLES = ROOT / "examples" / "testing"
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
OPERATOR_PAGE = (ROOT / "docs" / "write-an-operator.md").read_text(encoding="utf-8")


def run_tests(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    options = ("-q", "-ra", "-p", "no:cacheprovider", "--rootdir", str(folder))
    settings = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "KUBE"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *names],
        cwd=folder,
        env={**inherited, **settings},
        capture_output=True,
        text=True,
        timeout=180,
    )


def test_the_examples_pass(tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    # What needs more than is installed here says so in one line, and is skipped.
    result = run_tests(folder)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"\b[68] passed", result.stdout), result.stdout


def test_the_tests_on_the_page_pass_as_they_stand(tmp_path: Path) -> None:
    pages = [each for each in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def test_" in each]
    assert len(pages) >= 3
    for number, page in enumerate(pages):
        ast.parse(page)
        (tmp_path / f"test_page_{number}.py").write_text(page, encoding="utf-8")
    result = run_tests(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_operator_on_its_page_passes_its_tests(tmp_path: Path) -> None:
    samples = re.findall(r"```python\n(.*?)```", OPERATOR_PAGE, re.DOTALL)
    (tmp_path / "test_shards.py").write_text("\n".join(samples), encoding="utf-8")
    result = run_tests(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout, result.stdout


@pytest.mark.parametrize("name", re.findall(r"examples/testing/(\w+\.py)", PAGE + OPERATOR_PAGE))
def test_every_example_that_the_page_names_is_there(name: str) -> None:
    assert (EXAMPLES / name).is_file()
