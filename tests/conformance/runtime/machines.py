"""Machines with a runtime each: the same programs, as real processes and as simulated ones."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from podlife.clock import SystemClock
from podlife.kubelet.runtime import (
    ContainerConfig,
    ContainerState,
    ContainerStatus,
    ExecResult,
    Runtime,
    SandboxConfig,
)
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime, SimWorld
from tests.kit.wait import until

from .custom_machine import OwnMachine, SmallMachine, named


class Machine(Protocol):
    """Opens its runtime as often as an agent starts, and knows the programs by their configuration."""

    image_to_pull: str
    # How much the tests with many containers ask of it.
    crowd: int
    race_orders: int
    race_seconds: float

    def open(self) -> Runtime: ...

    def runs_for_ever(self) -> ContainerConfig: ...

    def exits(self, code: int, *, output: str = "", termination_message: str = "") -> ContainerConfig: ...

    def ignores_stop(self) -> ContainerConfig: ...

    def ends_in_its_own_time(self, seconds: float) -> ContainerConfig:
        """When asked to end it takes this long, and ends with code 7."""
        ...

    def cannot_start(self) -> ContainerConfig: ...

    async def quiet(self) -> None:
        """Until nothing is on its way that somebody asked for and did not wait for."""


class ProcessMachine(SmallMachine):
    def __init__(self, folder: Path) -> None:
        self._settings = ProcessSettings(folder / "runtime")

    def open(self) -> Runtime:
        return ProcessRuntime(self._settings, SystemClock())

    def runs_for_ever(self) -> ContainerConfig:
        return named(command=("sleep", "1000"))

    def exits(self, code: int, *, output: str = "", termination_message: str = "") -> ContainerConfig:
        script = f'printf "%s" "{output}"; printf "%s" "{termination_message}" > $PODLIFE_TERMINATION_LOG; exit {code}'
        return named(command=("sh", "-c"), args=(script,))

    def ignores_stop(self) -> ContainerConfig:
        return self._when_ready("signal.signal(signal.SIGTERM, signal.SIG_IGN)")

    def ends_in_its_own_time(self, seconds: float) -> ContainerConfig:
        return self._when_ready(
            f"signal.signal(signal.SIGTERM, lambda *_: (time.sleep({seconds}), sys.exit(7)))"
        )

    def cannot_start(self) -> ContainerConfig:
        return named(command=("/there/is/no/such/program",))

    def _when_ready(self, what: str) -> ContainerConfig:
        """A program that says `ready` once it has set itself up: until then any signal would just end it."""
        program = (
            f"import signal, sys, time; {what}; print('ready', flush=True); signal.pause(); time.sleep(1000)"
        )
        return named(command=(sys.executable, "-S", "-c", program), labels={"says": "ready"})


class SimMachine(SmallMachine):
    def __init__(self, folder: Path) -> None:
        self._behaviours: dict[str, Behaviour] = {}
        self._world = SimWorld(SystemClock(), lambda _, container: self._behaviours[container.name])

    def open(self) -> Runtime:
        return SimRuntime(self._world)

    def runs_for_ever(self) -> ContainerConfig:
        return self._config(Behaviour(exec=_shell))

    def exits(self, code: int, *, output: str = "", termination_message: str = "") -> ContainerConfig:
        return self._config(
            Behaviour(
                run_seconds=0,
                exit_code=code,
                output=tuple(output.splitlines()),
                termination_message=termination_message,
            )
        )

    def ignores_stop(self) -> ContainerConfig:
        return self._config(Behaviour(stop_seconds=None))

    def ends_in_its_own_time(self, seconds: float) -> ContainerConfig:
        return self._config(Behaviour(stop_seconds=seconds, stop_exit_code=7))

    def cannot_start(self) -> ContainerConfig:
        return self._config(Behaviour(start_error="/there/is/no/such/program: no such file"))

    def _config(self, behaviour: Behaviour) -> ContainerConfig:
        config = named()
        self._behaviours[config.name] = behaviour
        return config


def _shell(command: object) -> ExecResult:
    """As much of a shell as the suite needs."""
    assert command == ["sh", "-c", "echo out; echo err >&2; exit 4"]
    return ExecResult(4, b"out\n", b"err\n")


MACHINES: Mapping[str, Callable[[Path], Machine]] = {
    "process": ProcessMachine,
    "sim": SimMachine,
    "own": OwnMachine,
}


def pod(folder: Path, *, uid: str = "uid-1", **fields: Any) -> SandboxConfig:
    return SandboxConfig(uid, "default", "web", log_directory=str(folder / "logs"), **fields)


async def ended(runtime: Runtime, container_id: str) -> ContainerStatus:
    """The status of a container once it has exited."""
    async with asyncio.timeout(60), runtime.events() as events:
        while (status := await runtime.container_status(container_id)).state is not ContainerState.EXITED:
            await anext(events)
    return status


def logged(status: ContainerStatus) -> list[str]:
    """The lines of its log."""
    assert status.log_path is not None
    return [line.split(" ", 3)[3] for line in status.log_path.read_text().splitlines()]


class World:
    """A runtime, the programs of its machine, and a pod for them."""

    def __init__(self, runtime: Runtime, machine: Machine, folder: Path) -> None:
        self.runtime = runtime
        self.machine = machine
        self.folder = folder

    async def sandbox(self, **fields: Any) -> str:
        return await self.runtime.run_sandbox(pod(self.folder, **fields))

    async def created(self, config: ContainerConfig) -> str:
        """In the pod's sandbox, which is made with its first container."""
        found = await self.runtime.list_sandboxes(pod_uid="uid-1")
        return await self.runtime.create_container(found[0].id if found else await self.sandbox(), config)

    async def started(self, config: ContainerConfig) -> str:
        """Set up: one that says when it is ready has said so."""
        container_id = await self.created(config)
        await self.runtime.start_container(container_id)
        status = await self.runtime.container_status(container_id)
        if status.config.labels.get("says") == "ready" and (path := status.log_path) is not None:
            await until(lambda: path.exists() and "ready" in path.read_text(), seconds=60)
        return container_id

    async def status(self, container_id: str) -> ContainerStatus:
        return await self.runtime.container_status(container_id)

    async def ended(self, container_id: str) -> ContainerStatus:
        return await ended(self.runtime, container_id)

    async def clear(self) -> None:
        """Nothing that a failed test has left runs on."""
        await self.machine.quiet()
        for sandbox in await self.runtime.list_sandboxes():
            await self.runtime.remove_sandbox(sandbox.id)
