"""The Python samples of README.md and docs/, as somebody saves them who checks types: `mypy --strict` has no complaint.

The samples of a page are one program: a later one goes on where an earlier one ends, or replaces a part of it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.kit.real_parts import ROOT

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_KEPT = (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def samples_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def programs_of(samples: list[str]) -> list[str]:
    """One for each sample: with those before it, without what it defines itself and without what they run."""
    trees = [ast.parse(sample) for sample in samples]
    programs = []
    for number, tree in enumerate(trees):
        own = {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}
        before = [node for each in trees[:number] for node in each.body if isinstance(node, _KEPT)]
        kept = [node for node in before if not (isinstance(node, _DEFINITIONS) and node.name in own)]
        programs.append(ast.unparse(ast.Module([*kept, *tree.body], [])))
    return programs


def test_samples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    checked: dict[str, list[str]] = {}
    for page in PAGES:
        for number, program in enumerate(programs_of(samples_of(page))):
            path = tmp_path / f"{page.stem.lower().replace('-', '_')}_{number}.py"
            path.write_text(program, encoding="utf-8")
            checked.setdefault(page.name, []).append(str(path))
    assert {"client.md", "own-compute.md", "testing.md", "write-a-controller.md"} <= checked.keys()
    checker = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    # A cache of its own, beside that of `make types`: options differ, and both may run at once.
    cache = f"--cache-dir={ROOT / '.mypy_cache' / 'samples'}"
    done = subprocess.run(
        [*checker, cache, *(path for paths in checked.values() for path in paths)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
