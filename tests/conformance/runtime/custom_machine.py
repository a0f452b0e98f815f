"""The compute of `docs/own-compute.md`, taken from the page as it stands, with the programs of this suite."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from podlife.clock import SystemClock
from podlife.kubelet.runtime import ContainerConfig, Runtime
from podlife.kubelet.runtimes.custom import CustomRuntime, End, Work
from tests.kit.real_parts import ROOT

PAGE = (ROOT / "docs" / "own-compute.md").read_text(encoding="utf-8")
_numbers = itertools.count(1)


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def own_compute(*, whole: bool = False) -> ModuleType:
    """The compute, or the whole program with the node around it."""
    module = ModuleType("own_compute")
    code = "\n\n".join(blocks() if whole else blocks()[:1])
    exec(compile(code, "own_compute.py", "exec", dont_inherit=True), module.__dict__)
    return module


async def _for_ever(work: Work, stop: asyncio.Event) -> int:
    await stop.wait()
    return 143


async def _exits(work: Work, stop: asyncio.Event, code: str, output: str, message: str) -> End:
    work.write(output)
    return End(int(code), termination_message=message)


async def _ignores(work: Work, stop: asyncio.Event) -> int:
    await asyncio.Event().wait()
    return 0


async def _in_time(work: Work, stop: asyncio.Event, seconds: str) -> int:
    await stop.wait()
    await asyncio.sleep(float(seconds))
    return 7


_PROGRAMS: dict[str, Any] = {
    "for-ever": _for_ever,
    "exits": _exits,
    "ignores": _ignores,
    "in-time": _in_time,
}


def named(**fields: Any) -> ContainerConfig:
    """A container with a name and a log of its own."""
    name = f"c{next(_numbers)}"
    return ContainerConfig(name, image="example.com/image:1", log_path=f"{name}/0.log", **fields)


class SmallMachine:
    """Where a container costs next to nothing, and everything is done when it is answered."""

    image_to_pull = "example.com/image:1"
    crowd = 50
    race_orders = 60
    race_seconds = 60.0

    async def quiet(self) -> None:
        return


class OwnMachine(SmallMachine):
    """The compute goes on while its runtime is closed and opened again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "own"
        self._compute: Any = None

    def open(self) -> Runtime:
        if self._compute is None:
            self._compute = own_compute().Coroutines(_PROGRAMS)
        return CustomRuntime(self._compute, self._folder, SystemClock())

    def runs_for_ever(self) -> ContainerConfig:
        return named(command=("for-ever",))

    def exits(self, code: int, *, output: str = "", termination_message: str = "") -> ContainerConfig:
        return named(command=("exits",), args=(str(code), output, termination_message))

    def ignores_stop(self) -> ContainerConfig:
        return named(command=("ignores",))

    def ends_in_its_own_time(self, seconds: float) -> ContainerConfig:
        return named(command=("in-time",), args=(str(seconds),))

    def cannot_start(self) -> ContainerConfig:
        return named(command=("/there/is/no/such/program",))
