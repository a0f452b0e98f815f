"""Real process containers for tests: started in a sandbox, waited for, looked at."""

from __future__ import annotations

import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from podlife.clock import SystemClock
from podlife.kubelet.runtime import ContainerConfig, ContainerStatus
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from tests.conformance.runtime.machines import ProcessMachine, World
from tests.kit.wait import until

SLEEPS = ContainerConfig("main", command=("sleep", "1000"))


class ProcessWorld(World):
    """Scripts as containers of one pod; `folder` is the test's."""

    async def start(self, script: str = "exec sleep 1000", **fields: Any) -> str:
        config = ContainerConfig("main", command=("sh", "-c", script), log_path="main/0.log", **fields)
        return await self.started(config)

    async def run(self, script: str, **fields: Any) -> ContainerStatus:
        """To its end."""
        return await self.ended(await self.start(script, **fields))

    async def stopped(self, container_id: str, *, grace_seconds: float) -> ContainerStatus:
        await self.runtime.stop_container(container_id, grace_seconds=grace_seconds)
        return await self.status(container_id)


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[ProcessWorld]:
    """An agent comes and goes; what it has started stays."""
    async with ProcessRuntime(ProcessSettings(folder / "runtime", **settings), SystemClock()) as runtime:
        yield ProcessWorld(runtime, ProcessMachine(folder), folder)


@contextmanager
def full_disk(*, left: int = 0) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


async def said(path: Path) -> str:
    """What a process has written to a file, once it has."""
    await until(lambda: path.exists() and path.read_text().endswith("\n"), seconds=60)
    return path.read_text().strip()


def runs(pid: str) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return False
