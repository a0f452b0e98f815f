"""A node's agent as a user runs it: a process of its own that tests kill and start again on the same data."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real_parts import tail

__all__ = ["AgentProcess", "running_agent", "until"]

START_SECONDS = 120.0
END_SECONDS = 60.0


def until(is_so: Callable[[], bool], what: str, *, seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class AgentProcess:
    """The same node from one start to the next, as far as its cluster can tell."""

    def __init__(self, folder: Path, kubeconfig: Path, *flags: str, name: str = "n1") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.data = folder / "node"
        self.log = folder / "agent.log"
        self._kubeconfig = kubeconfig
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        told = ["--name", self.name, "--data", str(self.data), "--kubeconfig", str(self._kubeconfig)]
        return [sys.executable, "-m", "podlife", "node", *told, "--listen", "127.0.0.1:0", *self._flags]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; returns when its node is registered."""
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            until(self._is_registered, "the agent did not start", seconds=START_SECONDS)
        except AssertionError:
            raise AssertionError(tail(self.log)) from None

    def _is_registered(self) -> bool:
        assert self.is_running, tail(self.log)
        return b"registered" in self.log.read_bytes()

    def kill(self) -> None:
        """As `kill -9`."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(END_SECONDS)

    def stop(self) -> int:
        """As a user stops it; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(END_SECONDS)


@contextmanager
def running_agent(folder: Path, kubeconfig: Path, *flags: str) -> Iterator[AgentProcess]:
    """An agent whose node is registered, and that is gone when the block is left. Its pods are for the test to end."""
    agent = AgentProcess(folder, kubeconfig, *flags)
    try:
        agent.start()
        yield agent
    finally:
        if agent.is_running:
            agent.kill()
