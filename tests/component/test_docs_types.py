"""The Python samples of README.md and docs/, as somebody saves them who checks types: `mypy --strict` has no complaint.

The samples of a page are one program: a later one goes on where an earlier one ends, or replaces a part of it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.real_parts import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def samples_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_samples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    programs = {}
    for page in PAGES:
        if samples := samples_of(page):
            program = tmp_path / f"{page.stem.lower().replace('-', '_')}_sample.py"
            program.write_text("\n\n".join(samples), encoding="utf-8")
            programs[page.name] = program
    assert {"README.md", "own-compute.md", "testing.md", "write-a-controller.md"} <= programs.keys()
    checker = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--disable-error-code=no-redef"]
    # A cache of its own, beside that of `make types`: options differ, and both may run at once.
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'samples'}"
    done = subprocess.run(
        [
            *checker,
            "--no-warn-unused-ignores",
            "--follow-imports=silent",
            cache,
            *map(str, programs.values()),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
