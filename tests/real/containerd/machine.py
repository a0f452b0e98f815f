"""The programs of the runtime's conformance suite, as containers of busybox."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

from podlife.kubelet.runtime import ContainerConfig
from podlife.kubelet.runtimes.containerd import ContainerdRuntime, ContainerdSettings

from .daemon import IMAGE, Daemon

_numbers = itertools.count(1)


class ContainerdMachine:
    # A sandbox costs two processes and a network here.
    crowd = 12
    race_orders = 20
    race_seconds = 120.0

    def __init__(self, daemon: Daemon, folder: Path, image_to_pull: str) -> None:
        self.image_to_pull = image_to_pull
        self.settings = ContainerdSettings(
            folder / "agent", socket=daemon.socket, cgroup_parent=daemon.cgroup_parent
        )

    def open(self) -> ContainerdRuntime:
        return ContainerdRuntime(self.settings)

    def runs(self, script: str, **fields: Any) -> ContainerConfig:
        """A shell with this script."""
        name = f"c{next(_numbers)}"
        given = {
            "image": IMAGE,
            "log_path": f"{name}/0.log",
            "command": ("sh", "-c"),
            "args": (script,),
        } | fields
        return ContainerConfig(name, **given)

    def runs_for_ever(self) -> ContainerConfig:
        # The first process of a container is not ended by a signal that it does not handle.
        return self._when_ready("trap 'exit 143' TERM; echo ready; sleep 1000 & wait")

    def exits(self, code: int, *, output: str = "", termination_message: str = "") -> ContainerConfig:
        return self.runs(
            f'printf "%s" "{output}"; printf "%s" "{termination_message}" > /dev/termination-log; exit {code}'
        )

    def ignores_stop(self) -> ContainerConfig:
        return self._when_ready("trap '' TERM; echo ready; sleep 1000")

    def ends_in_its_own_time(self, seconds: float) -> ContainerConfig:
        return self._when_ready(f"trap 'sleep {seconds}; exit 7' TERM; echo ready; sleep 1000 & wait")

    def cannot_start(self) -> ContainerConfig:
        return self.runs("", command=("/there/is/no/such/program",), args=())

    async def quiet(self) -> None:
        """Orders whose callers have gone are on their way in tasks of the runtime."""
        async with asyncio.timeout(120):
            while orders := [
                task for task in asyncio.all_tasks() if task.get_name().startswith("containerd order")
            ]:
                await asyncio.wait(orders)

    def _when_ready(self, script: str) -> ContainerConfig:
        return self.runs(script, labels={"says": "ready"})
