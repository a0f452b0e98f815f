"""Every demo from its first step to its last, with the lines that it shows typed into a shell while it waits: kubectl
understands them, and shows what the demo tells."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.component.cli.commands import on_terminal, processes_of
from tests.kit.wait import until
from tests.real.conftest import Kubectl

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

WAITS = "(press Enter to continue)"
ANSI = re.compile(r"\x1b\[[0-9;]*m")

# What kubectl must show when a step has been told: a line of its own, and what its answer has.
SHOWN = {
    ("node-failure", 3): ("kubectl get nodes", "NotReady"),
    ("node-failure", 4): ("kubectl get pods -o wide", "Terminating"),
    ("node-failure", 6): ("kubectl get statefulset db", "2/3"),
    ("node-failure", 9): ("kubectl get statefulset db", "3/3"),
    ("graceful-delete", 9): ("kubectl get pod lonely", "Terminating"),
    ("graceful-delete", 10): ("kubectl get pods", "No resources found"),
    ("orphans", 3): ("kubectl get pods", "Running"),
    ("orphans", 7): ("kubectl get deployment web", "3/3"),
}
LAST = {"node-failure": 11, "graceful-delete": 10, "orphans": 7}
# What kubectl says of what the demo has done already: the line was understood.
DONE = {"get": "NotFound", "delete": "NotFound", "taint": "already has", "taint-": "not found"}


class Typing:
    """A user who types what a demo shows."""

    def __init__(self, kubectl: Kubectl, kubeconfig: Path) -> None:
        self._kubectl = kubectl
        self._kubeconfig = kubeconfig

    async def type(self, line: str) -> subprocess.CompletedProcess[str]:
        _, *arguments = shlex.split(line)
        # What changes something was done by the demo: here it is only asked whether it could be.
        if arguments[0] in ("delete", "taint"):
            arguments.append("--dry-run=server")
        return await asyncio.to_thread(self._kubectl, *arguments, kubeconfig=self._kubeconfig)


def is_done(line: str, said: str) -> bool:
    verb = shlex.split(line)[1] + ("-" if line.endswith("-") else "")
    return verb in DONE and DONE[verb] in said


async def play(name: str, kubectl: Kubectl) -> None:
    async with on_terminal("demo", name, "--pause") as terminal:
        for number in range(1, LAST[name] + 1):
            read = len(terminal.shown)
            await terminal.wait_for(f"{number}. ")
            while terminal.shown.count(WAITS) < number:
                await terminal.wait_for_more()
            told = ANSI.sub("", terminal.shown[read:])
            found = re.search(r"KUBECONFIG=(\S+)", ANSI.sub("", terminal.shown))
            assert found
            user = Typing(kubectl, Path(found[1]))
            for line in re.findall(r"^ +(?:see +)?(kubectl .*?)\r?$", told, re.MULTILINE):
                answer = await user.type(line)
                assert answer.returncode == 0 or is_done(line, answer.stderr), (line, answer)
            if (name, number) in SHOWN:
                line, text = SHOWN[name, number]
                answer = await user.type(line)
                assert text in answer.stdout + answer.stderr, (line, answer)
            terminal.type("\n")
        assert await terminal.exit_code() == 0


async def test_every_demo_comes_to_its_end_and_kubectl_shows_what_it_tells(
    kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # Each has a cluster of its own, and mostly waits.
    try:
        async with asyncio.TaskGroup() as group:
            for name in LAST:
                group.create_task(play(name, kubectl), name=name)
        assert not list(tmp_path.iterdir())
    finally:
        # Also of a demo that was killed: its folder must not go before them.
        await until(lambda: not processes_of(tmp_path))


async def test_the_cluster_of_a_demo_that_was_killed_ends_with_its_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with on_terminal("demo", "orphans", "--pause") as terminal:
        await terminal.wait_for(WAITS)
        assert processes_of(tmp_path)
    # With the block it was killed, and could end nothing.
    await until(lambda: not processes_of(tmp_path))
