"""`podlife up` as a user runs it: a process that tests stop, kill and start again on the same folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import StateDir
from tests.real_parts import free_port, tail

__all__ = ["UpProcess", "podlife", "running_up", "until"]

START_SECONDS = 180.0


def until(is_so: Callable[[], bool], what: str, *, seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def podlife(
    *arguments: str, seconds: float = START_SECONDS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Any other command, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "podlife", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | environment,
    )


class UpProcess:
    """The same cluster from one start to the next."""

    def __init__(self, folder: Path, *flags: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        self.log = folder / "up.log"
        self.port = free_port()
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.data / "admin.kubeconfig"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def said(self) -> str:
        return self.log.read_text()

    def start(self) -> None:
        """Returns when the cluster is up."""
        flags = ["--data", str(self.data), "--port", str(self.port), *self._flags]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "podlife", "up", *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_SECONDS
        while "Ctrl-C stops it" not in self.said:
            assert self.is_running, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.02)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, *, seconds: float = START_SECONDS) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def stop(self) -> int:
        """As Ctrl-C; its exit code."""
        self.signal(signal.SIGINT)
        return self.wait()

    def kill(self) -> None:
        """As `kill -9`."""
        self.signal(signal.SIGKILL)
        self.wait()

    def status(self) -> dict[str, Any]:
        done = podlife("status", "-o", "json", "--data", str(self.data))
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def part(self, name: str) -> dict[str, Any]:
        """One of its components, without a command's way to it."""
        [found] = [each for each in self.parts() if each["name"] == name]
        return found

    def parts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ask(StateDir(self.data), {"do": "status"})["parts"]
        return found

    def logs(self) -> str:
        return "\n".join(f"{each.name}:\n{tail(each)}" for each in sorted((self.data / "logs").iterdir()))


@contextmanager
def running_up(folder: Path, *flags: str) -> Iterator[UpProcess]:
    """A cluster that is up, and gone with its pods when the block is left."""
    up = UpProcess(folder, *flags)
    try:
        up.start()
        yield up
    finally:
        if up.is_running:
            podlife("down", "--now", "--data", str(up.data))
        if up.is_running:
            up.kill()
