"""Real process containers for tests: started in a sandbox, waited for, looked at."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    SandboxConfig,
)
from podlife.kubelet.runtimes.process import ProcessRuntime


async def started(runtime: ProcessRuntime, tmp_path: Path, script: str, **fields: object) -> str:
    sandboxes = await runtime.list_sandboxes()
    sandbox = SandboxConfig("uid", "default", "web", log_directory=str(tmp_path / "logs"))
    sandbox_id = sandboxes[0].id if sandboxes else await runtime.run_sandbox(sandbox)
    config = ContainerConfig("main", command=("sh", "-c", script), log_path="main/0.log")
    container_id = await runtime.create_container(sandbox_id, replace(config, **fields))  # type: ignore[arg-type]
    await runtime.start_container(container_id)
    return container_id


async def ended(runtime: ProcessRuntime, container_id: str) -> ContainerStatus:
    async with asyncio.timeout(60), runtime.events() as events:
        while (status := await runtime.container_status(container_id)).state is not ContainerState.EXITED:
            await anext(events)
    return status


async def said(path: Path) -> str:
    """What a process has written to a file, once it has."""
    async with asyncio.timeout(60):
        while not path.exists() or not path.read_text().endswith("\n"):
            await asyncio.sleep(0.005)
    return path.read_text().strip()


def runs(pid: str) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return False


def logged(status: ContainerStatus) -> list[str]:
    assert status.log_path is not None
    return [line.split(" ", 3)[3] for line in status.log_path.read_text().splitlines()]
