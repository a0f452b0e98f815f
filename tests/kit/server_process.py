"""The embedded API server as a process.

It keeps its port and data folder across restarts, so that clients' kubeconfigs and watch revisions stay valid.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import aiohttp
import yaml

from tests.kit.component_process import START_SECONDS, ComponentProcess, running
from tests.kit.real_parts import free_port


class ServerProcess(ComponentProcess):
    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__(folder, "server", ready="Ctrl-C stops it.")
        self.data = folder / "data"
        self.port = free_port()
        self._flags = flags

    @property
    def arguments(self) -> list[str]:
        return ["apiserver", "--data", str(self.data), "--port", str(self.port), *self._flags]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

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

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run another command on the same data, such as `podlife apiserver check`."""
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


def running_server(folder: Path, *flags: str) -> AbstractContextManager[ServerProcess]:
    """A running server, killed when the block is left."""
    return running(ServerProcess(folder, *flags))
