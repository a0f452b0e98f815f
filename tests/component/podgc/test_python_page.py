"""docs/gc-from-python.md: its samples do what the page says, and type-check as a user's own code would."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from podlife import podgc
from podlife.aio import cancel_and_wait
from podlife.testing import virtual_time
from tests.component.podgc.test_guards import ended
from tests.component.podgc.world import World, serve
from tests.kit.real_parts import ROOT

PAGE = (ROOT / "docs" / "gc-from-python.md").read_text()
SWEEP, RUN = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
POLICY = """
apiVersion: podlife.dev/v1
kind: PodGCPolicy
upstream: {terminated: {threshold: 1}}
guards: {perPass: 1}
"""


def sample(text: str, world: World, answer: str = "") -> ModuleType:
    module = ModuleType("sample")
    exec(compile(text, "sample.py", "exec", dont_inherit=True), module.__dict__)
    module.__dict__["Client"] = SimpleNamespace(connect=lambda _: world.client)
    module.__dict__["load"] = lambda: None
    module.__dict__["input"] = lambda _: answer
    return module


@virtual_time
@pytest.mark.parametrize(("answer", "left"), [("n", 3), ("y", 2)])
async def test_the_sample_shows_asks_and_sweeps_what_guards_let_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: str, left: int
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    async with serve(tmp_path) as world:
        await world.node()
        await ended(world, 3)
        code = await sample(SWEEP, world, answer).main(tmp_path / "policy.yaml")
        assert (code, len(await world.left())) == (1, left)
        said = capsys.readouterr().out
        assert "default/p000: upstream/terminated: 3 terminated pods, 1 may stay" in said
        assert "1 held back by perPass: at most 1 pods go in one pass" in said
        assert ("{'deleted': 1}" in said) is (answer == "y")


@virtual_time
async def test_the_collector_of_the_page_collects(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await ended(world, 502)
        task = asyncio.get_running_loop().create_task(sample(RUN, world).main())
        await asyncio.sleep(10)
        assert len(await world.left()) == 500
        await cancel_and_wait(task)


def check_types(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "sample.py").write_text(text)
    # Where the package is installed, as for anybody who writes such a file; with no settings of ours.
    flags = ["--strict", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    command = [sys.executable, "-m", "mypy", *flags, "sample.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_samples_pass_mypys_strict_mode(tmp_path: Path) -> None:
    for text in (SWEEP, RUN):
        checked = check_types(tmp_path, text)
        assert checked.returncode == 0, checked.stdout
    wrong = check_types(tmp_path, SWEEP.replace("victim.why", "victim.whyever"))
    assert 'has no attribute "whyever"' in wrong.stdout


def test_all_that_is_exported_is_there_and_the_page_names_nothing_else() -> None:
    assert sorted(podgc.__all__) == list(podgc.__all__)
    for name in podgc.__all__:
        assert getattr(podgc, name) is not None
    used = re.findall(r"^from podlife\.podgc import (.*)$", PAGE, re.MULTILINE)
    assert {name for line in used for name in line.split(", ")} <= set(podgc.__all__)
