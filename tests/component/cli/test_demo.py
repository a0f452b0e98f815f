"""`podlife demo` from outside: a demo that does not see what it tells says so, and none leaves anything behind. That
they come to their ends is seen in tests/real, with kubectl."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from podlife.client import PODS, Client, DeleteOptions, Flags, load
from tests.component.cli.commands import Terminal, assert_one_line, on_terminal, podlife, processes_of
from tests.kit.wait import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")


@pytest.fixture(autouse=True)
def demos_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where demos keep what they keep."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def folder_of(terminal: Terminal) -> Path:
    found = re.search(r"KUBECONFIG=(\S+)/admin.kubeconfig", terminal.shown)
    assert found, terminal.shown
    return Path(found[1])


async def test_who_cannot_press_enter_is_told_before_anything_starts(demos_in: Path) -> None:
    assert_one_line(await podlife("demo", "orphans", "--pause"), "--pause", "terminal")
    assert not list(demos_in.iterdir())


async def test_a_demo_that_is_interrupted_leaves_nothing_behind(demos_in: Path) -> None:
    async with on_terminal("demo", "graceful-delete", "--pause") as terminal:
        await terminal.wait_for("(press Enter to continue)")
        folder = folder_of(terminal)
        # Its supervisor and its fork server, five components, and three pods.
        assert folder.parent == demos_in
        assert len(processes_of(folder)) >= 10
        terminal.type("\n")
        await terminal.wait_for("2. ")
        terminal.interrupt()
        assert await terminal.exit_code() == 130
    # What it has ended may take the kernel a moment longer.
    await until(lambda: not processes_of(folder))
    assert not list(demos_in.iterdir())


async def test_a_demo_that_does_not_see_what_it_tells_fails(demos_in: Path) -> None:
    async with on_terminal("demo", "orphans", "--pause") as terminal:
        await terminal.wait_for("(press Enter to continue)")
        folder = folder_of(terminal)
        async with Client.connect(load(Flags(kubeconfig=str(folder / "admin.kubeconfig")))) as client:
            for pod in (await client.list(PODS, "default")).items:
                name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                options = DeleteOptions(grace_period_seconds=0, uid=uid)
                await client.delete(PODS, name, "default", options=options)
        terminal.type("\n")
        await terminal.wait_for("left alone")
        assert await terminal.exit_code() == 1
        assert "podlife: the demo did not observe what it describes: web-" in terminal.shown
        assert "Traceback" not in terminal.shown
    await until(lambda: not processes_of(folder))
    assert not list(demos_in.iterdir())
