"""The examples of the test kit with kopf and the official client, none of which may be skipped here."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.component.stories.test_examples import EXAMPLES, run_tests


def test_the_examples_with_kopf_and_the_official_client_pass(tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    result = run_tests(folder, "test_greeter.py", "test_rollout.py")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout, result.stdout
