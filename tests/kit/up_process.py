"""`podlife up` as a process that tests stop, kill and restart on the same folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podlife.localcluster.control_socket import ask
from podlife.localcluster.state_dir import StateDir
from tests.kit.component_process import START_SECONDS, ComponentProcess
from tests.kit.real_parts import free_port, tail


def podlife(
    *arguments: str, seconds: float = START_SECONDS, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run another command and wait for it."""
    return subprocess.run(
        [sys.executable, "-m", "podlife", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | environment,
    )


class UpProcess(ComponentProcess):
    _stop_signal = signal.SIGINT  # as Ctrl-C

    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__(folder, "up", ready="Ctrl-C stops it")
        self.data = folder / "data"
        self.port = free_port()
        self._flags = flags

    @property
    def arguments(self) -> list[str]:
        return ["up", "--data", str(self.data), "--port", str(self.port), *self._flags]

    @property
    def kubeconfig(self) -> Path:
        return self.data / "admin.kubeconfig"

    def status(self) -> dict[str, Any]:
        done = podlife("status", "-o", "json", "--data", str(self.data))
        assert done.returncode == 0, done.stderr
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def part(self, name: str) -> dict[str, Any]:
        """One of its components, read from the control socket, without starting a command."""
        [part] = [each for each in self.parts() if each["name"] == name]
        return part

    def parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = ask(StateDir(self.data), {"do": "status"})["parts"]
        return parts

    def logs(self) -> str:
        return "\n".join(f"{each.name}:\n{tail(each)}" for each in sorted((self.data / "logs").iterdir()))


@contextmanager
def running_up(folder: Path, *flags: str) -> Iterator[UpProcess]:
    """A running cluster, removed with its pods when the block is left."""
    up = UpProcess(folder, *flags)
    try:
        up.start()
        yield up
    finally:
        if up.is_running:
            podlife("down", "--now", "--data", str(up.data))
        if up.is_running:
            up.kill()
