"""Parts as processes: forked, heard, started again, and never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from podlife.aio import cancel_and_wait, spawn
from podlife.daemons.event_loop import stopped_by_signals
from podlife.errors import ConfigError, PodlifeError
from podlife.localcluster.forkserver import Forks, Message, TellingPart
from podlife.localcluster.supervisor import Supervised, Supervisor


async def answer(telling: TellingPart) -> None:
    data = await asyncio.get_running_loop().sock_recv(telling.line, 100)
    telling.tell(json.loads(data))


def serve(order: Message, telling: TellingPart) -> None:
    """Tells that it is ready, then what it is ordered, until SIGTERM."""

    async def run() -> None:
        stop = asyncio.Event()
        telling.line.setblocking(False)
        with stopped_by_signals(stop.set):
            telling.tell({"ready": order["word"]})
            answering = spawn(answer(telling), name="orders", on_failure=print)
            await stop.wait()
            await cancel_and_wait(answering)

    asyncio.run(run())


def fail(order: Message, telling: TellingPart) -> None:
    raise ConfigError("the port is taken")


def hear_late(order: Message, telling: TellingPart) -> None:
    """Takes a while until it can act on signals, and says that it did."""
    telling.tell({"ready": ""})
    time.sleep(0.3)

    async def run() -> None:
        stop = asyncio.Event()
        with stopped_by_signals(stop.set):
            await stop.wait()
        telling.tell({"left": 7})

    asyncio.run(run())


class Parts:
    def __init__(self, forks: Forks, folder: Path) -> None:
        self.forks = forks
        self.said: list[str] = []
        self.supervisor = Supervisor(forks, self.said.append)
        self._folder = folder

    def start(self, kind: str, **order: str) -> Supervised:
        part = Supervised(kind, kind, order, self._folder / f"{kind}.log")
        self.supervisor.start(part)
        return part

    def read(self) -> asyncio.Task[None]:
        return spawn(self.supervisor.run(), name="parts", on_failure=lambda failure: None)

    async def ready(self, part: Supervised) -> None:
        await self.supervisor.wait_ready(part, seconds=60.0, is_ready=lambda: False)


@pytest.fixture
def forks() -> Forks:
    # Before there is a loop that runs, as in the command itself.
    return Forks.open({"serve": serve, "fail": fail, "hear-late": hear_late}, {"PATH": os.environ["PATH"]})


@pytest.fixture
async def parts(forks: Forks, tmp_path: Path) -> AsyncIterator[Parts]:
    made = Parts(forks, tmp_path)
    reading = made.read()
    yield made
    await cancel_and_wait(reading)
    await forks.close()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


async def test_a_part_tells_when_it_is_ready_and_takes_orders(parts: Parts) -> None:
    part = parts.start("serve", word="hello")
    await parts.ready(part)
    assert part.answer == "hello"
    parts.supervisor.order(part, {"left": 3})
    await until(lambda: part.left == 3)


async def test_a_part_that_fails_before_all_are_up_ends_the_start_with_its_reason(parts: Parts) -> None:
    part = parts.start("fail")
    with pytest.raises(PodlifeError, match="the port is taken"):
        await parts.ready(part)
    assert part.state == "waiting"


async def test_a_part_that_is_killed_is_started_again_with_one_line(parts: Parts) -> None:
    parts.supervisor.is_up = True
    part = parts.start("serve", word="")
    await parts.ready(part)
    first = part.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: part.pid not in (0, first))
    assert part.restarts == 1
    [line] = parts.said
    assert line.startswith("serve was ended by SIGKILL; it is started again in 0.5 s")


async def test_a_part_that_was_stopped_is_not_started_again(parts: Parts) -> None:
    parts.supervisor.is_up = True
    part = parts.start("serve", word="")
    await parts.ready(part)
    await parts.supervisor.stop([part], seconds=60)
    assert (part.state, parts.said) == ("stopped", [])


async def test_a_signal_that_comes_before_a_part_can_act_on_it_waits(parts: Parts) -> None:
    part = parts.start("hear-late")
    await parts.ready(part)
    await parts.supervisor.stop([part], seconds=60)
    assert part.left == 7


async def test_parts_end_with_the_one_that_has_started_them(forks: Forks, tmp_path: Path) -> None:
    made = Parts(forks, tmp_path)
    reading = made.read()
    part = made.start("serve", word="")
    await made.ready(part)
    await cancel_and_wait(reading)
    await forks.close()
    # One that nobody has waited for has ended all the same.
    await until(lambda: not Path(f"/proc/{part.pid}/cwd").exists())


async def test_parts_end_with_a_nursery_that_is_killed(forks: Forks, tmp_path: Path) -> None:
    made = Parts(forks, tmp_path)
    reading = made.read()
    part = made.start("serve", word="")
    await made.ready(part)
    os.kill(forks.pid, signal.SIGKILL)
    with pytest.raises(PodlifeError, match="start `podlife up` again"):
        await reading
    await until(lambda: not Path(f"/proc/{part.pid}/cwd").exists())
    await forks.close()


async def test_orders_that_the_nursery_has_no_room_for_are_not_lost(parts: Parts) -> None:
    part = parts.start("serve", word="")
    await parts.ready(part)
    os.kill(parts.forks.pid, signal.SIGSTOP)
    try:
        for _ in range(2000):
            parts.supervisor.signal(part, 0)
        parts.supervisor.order(part, {"left": 5})
    finally:
        os.kill(parts.forks.pid, signal.SIGCONT)
    await until(lambda: part.left == 5)
