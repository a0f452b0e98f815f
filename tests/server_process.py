"""The embedded API server as a user runs it: a process of its own that tests kill, starve and start again.

A `ServerProcess` keeps its port and its data folder from one start to the next, so that what clients hold (the
kubeconfig, a watch's last revision) means the same server afterwards. Nothing here knows pytest.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import yaml

from tests.real_parts import free_port, tail

__all__ = ["ServerProcess", "running_server"]

START_SECONDS = 180.0
END_SECONDS = 60.0


class ServerProcess:
    """Start it, kill it, start it again: the same server, as far as its clients can tell."""

    def __init__(self, folder: Path, *flags: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.port = free_port()
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    @property
    def kubeconfig(self) -> Path:
        return self.data / "admin.kubeconfig"

    @property
    def token(self) -> str:
        token: str = yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]["token"]
        return token

    def begin(self) -> None:
        """Start it and do not wait."""
        arguments = ["apiserver", "--data", str(self.data), "--port", str(self.port), *self._flags]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "podlife", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def start(self) -> None:
        """Start it; returns when it serves."""
        self.begin()
        deadline = time.monotonic() + START_SECONDS
        while b"Ctrl-C stops it." not in self.log.read_bytes():
            assert self.is_running, tail(self.log)
            assert time.monotonic() < deadline, tail(self.log)
            time.sleep(0.01)

    def kill(self) -> None:
        """As `kill -9`: it gets no chance to put anything away."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(END_SECONDS)

    def stop(self) -> int:
        """As a user stops it; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(END_SECONDS)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Another command on the same data, as `podlife apiserver check`."""
        return subprocess.run(
            [sys.executable, "-m", "podlife", "apiserver", *command, "--data", str(self.data)],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
        )

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.data / "pki" / "ca.crt")

    def session(self, *, seconds: float | None = 120.0) -> aiohttp.ClientSession:
        """A client with the admin's token; the caller closes it."""
        return aiohttp.ClientSession(
            self.url,
            connector=aiohttp.TCPConnector(ssl=self.tls(), limit=0),
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=aiohttp.ClientTimeout(total=seconds),
        )


@contextmanager
def running_server(folder: Path, *flags: str) -> Iterator[ServerProcess]:
    """A server that serves, and is gone when the block is left."""
    server = ServerProcess(folder, *flags)
    try:
        server.start()
        yield server
    finally:
        if server.is_running:
            server.kill()
