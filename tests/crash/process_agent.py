"""An agent that dies in the middle: a scenario over the process runtime, killed at its n-th step.

Run as a program with a folder. For every line of its input, a number, it forks an agent that kills itself with SIGKILL
when it has made that many calls of functions of the runtime, or ends when the scenario does; it answers each line with
`killed` or `done`. A container writes one line to the folder's `witness` when it starts: its ID and its process ID.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from podlife.clock import SystemClock
from podlife.kubelet.runtime import ContainerConfig, Resources, SandboxConfig
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings

_OURS = f"{os.sep}kubelet{os.sep}runtime"


def settings_of(folder: Path) -> ProcessSettings:
    return ProcessSettings(folder / "runtime")


def container(folder: Path, name: str, then: str) -> ContainerConfig:
    script = f"echo $PODLIFE_CONTAINER_ID $$ >> {folder}/witness; {then}"
    return ContainerConfig(
        name, command=("sh", "-c", script), log_path=f"{name}.log", resources=Resources(pids_limit=100)
    )


async def scenario(folder: Path) -> None:
    """A pod with a container that ends by itself, one that is stopped and one that is removed while it runs."""
    async with ProcessRuntime(settings_of(folder), SystemClock()) as runtime:
        sandbox_id = await runtime.run_sandbox(
            SandboxConfig("uid", "default", "web", log_directory=str(folder / "logs"))
        )
        short = await runtime.create_container(sandbox_id, container(folder, "short", "exit 5"))
        async with runtime.events() as events:
            await runtime.start_container(short)
            while (await runtime.container_status(short)).exit_code is None:
                await anext(events)
        long = await runtime.create_container(sandbox_id, container(folder, "long", "exec sleep 1000"))
        await runtime.start_container(long)
        await runtime.exec_sync(long, ["true"])
        other = await runtime.create_container(sandbox_id, container(folder, "other", "exec sleep 1000"))
        await runtime.start_container(other)
        await runtime.stop_container(long, grace_seconds=10)
        await runtime.remove_container(long)
        await runtime.remove_sandbox(sandbox_id)


def _die_after(calls: int) -> None:
    left = calls

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left
        if _OURS in frame.f_code.co_filename:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def main() -> None:
    folder = Path(sys.argv[1])
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _die_after(int(line))
            asyncio.run(scenario(folder))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write("killed\n" if os.WIFSIGNALED(status) else f"done {status}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
