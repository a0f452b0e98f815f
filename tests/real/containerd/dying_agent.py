"""An agent that dies in the middle: a pod's life over the runtime containerd, killed at its n-th call of the daemon.

Run as a program with the daemon's socket and a folder. For every line of its input, a number and a moment, it forks an
agent that kills itself with SIGKILL at that call: `before` it is sent, while it is `under` way, or `after` its answer.
It answers each line with `killed`, with `done` where the life was over first, or with the error that ended it. A
container writes its name to the folder's `witness` when it starts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from podlife.kubelet.runtime import ConflictInRuntimeError, ContainerConfig, Mount, SandboxConfig
from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings
from podlife.kubelet.runtimes.containerd.client import CriClient

from .daemon import IMAGE


def settings_of(socket: Path, folder: Path) -> ContainerdSettings:
    return ContainerdSettings(folder / "agent", socket=socket)


def container(folder: Path, name: str, then: str) -> ContainerConfig:
    # Set up before it tells: until then a signal would end it in its own way.
    script = f"trap 'exit 6' TERM; echo {name} >> /shared/witness; {then}"
    mounts = (Mount("/shared", str(folder)),)
    return ContainerConfig(name, IMAGE, command=("sh", "-c", script), log_path=f"{name}.log", mounts=mounts)


async def life(socket: Path, folder: Path) -> None:
    """A pod with a container that ends by itself and one that is stopped."""
    # Listings of its own accord would make the count of calls another one each time.
    settings = replace(settings_of(socket, folder), relist_seconds=3600)
    async with ContainerdRuntime(settings) as runtime:
        config = SandboxConfig("uid", "default", "web", log_directory=str(folder / "logs"), host_network=True)
        sandbox_id = await run_sandbox(runtime, config)
        short = await runtime.create_container(sandbox_id, container(folder, "short", "exit 5"))
        await runtime.start_container(short)
        long = container(folder, "long", "sleep 1000 & wait")
        long_id = await runtime.create_container(sandbox_id, long)
        await runtime.start_container(long_id)
        while "long" not in witness(folder):
            await asyncio.sleep(0.01)
        await runtime.stop_container(long_id, grace_seconds=10)
        await runtime.remove_container(long_id)
        await runtime.remove_sandbox(sandbox_id)


async def run_sandbox(runtime: ContainerdRuntime, config: SandboxConfig) -> str:
    """A busy daemon may still be giving up the sandbox of the agent before, and has its name until then."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await runtime.run_sandbox(config)
            except ConflictInRuntimeError:
                await asyncio.sleep(0.1)


def witness(folder: Path) -> list[str]:
    """The containers that have started, once for each time."""
    path = folder / "witness"
    return path.read_text().split() if path.exists() else []


def die_at(number: int, moment: str) -> None:
    original, left = CriClient.call, number

    async def call(self: CriClient, method: str, /, **fields: Any) -> Any:
        nonlocal left
        left -= 1
        if left != 0:
            return await original(self, method, **fields)
        if moment != "before":
            asking = asyncio.get_running_loop().create_task(original(self, method, **fields))
            await asyncio.wait([asking], timeout=0.02 if moment == "under" else None)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    CriClient.call = call  # type: ignore[method-assign]


def main() -> None:
    socket, folder = Path(sys.argv[1]), Path(sys.argv[2])
    for line in sys.stdin:
        number, moment = line.split()
        pid = os.fork()
        if pid == 0:
            die_at(int(number), moment)
            try:
                asyncio.run(life(socket, folder))
            except BaseException as error:  # noqa: BLE001 - the parent reports it
                answer(f"failed: {error!r}")
            else:
                answer("done")
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            answer("killed")


def answer(line: str) -> None:
    sys.stdout.write(line.replace("\n", " ") + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
