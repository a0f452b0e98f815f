"""The parts of `podlife up`, kept running: one that ends is started again, later each time, and one line says so.

A part that ends before everything has come up ends the start, with its own reason: a user who names a port that is
taken is told that, not that something is tried again. Which parts there are, and their order, is for `up_cluster`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from podlife.aio import wait_until_set
from podlife.errors import PodlifeError
from podlife.localcluster.forkserver import Forks, Message

__all__ = ["Supervised", "Supervisor"]

_FIRST_DELAY_SECONDS, _MOST_DELAY_SECONDS = 0.5, 30.0
# Who ran for so long has not failed because of the last failure.
_WELL_SECONDS = 60.0
_KILL_SECONDS = 5.0


class Supervised:
    """One part, from one process of it to the next. `left` is what it says that it has still to do."""

    def __init__(self, name: str, kind: str, order: Message, log: Path) -> None:
        self.name = name
        self.kind = kind
        self.order = order
        self.log = log
        self.pid = 0
        self.restarts = 0
        self.is_wanted = False
        # From when its start was asked for: also before it is known which process it is.
        self.is_alive = False
        self.started_at = 0.0
        self.answer = ""
        self.failure = ""
        self.left: int | None = None
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.delay_seconds = _FIRST_DELAY_SECONDS
        self.again: asyncio.TimerHandle | None = None

    @property
    def state(self) -> str:
        if self.is_alive:
            return "running"
        return "waiting" if self.is_wanted else "stopped"


class Supervisor:
    def __init__(self, forks: Forks, say: Callable[[str], None]) -> None:
        self.parts: dict[str, Supervised] = {}
        # From when on a part that ends is started again.
        self.is_up = False
        self._forks = forks
        self._say = say

    async def run(self) -> None:
        """Raises PodlifeError if the process that starts all others is gone."""
        await self._forks.run(self._take)
        raise PodlifeError("the process that starts the parts has ended: start `podlife up` again")

    def start(self, part: Supervised) -> None:
        """Also again, one that was stopped."""
        self.parts[part.name] = part
        part.is_wanted = True
        part.delay_seconds = _FIRST_DELAY_SECONDS
        if not part.is_alive:
            self._start(part)

    async def wait_ready(self, part: Supervised, *, seconds: float, is_ready: Callable[[], bool]) -> None:
        """Raises PodlifeError when it is not in time, or it ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not (part.ready.is_set() or is_ready()):
            if part.ended.is_set():
                raise PodlifeError(part.failure or f"{part.name} has ended: {part.log} says why")
            if loop.time() > deadline:
                raise PodlifeError(f"{part.name} is not ready after {seconds:.0f} s: {part.log} may say why")
            await asyncio.sleep(0.01)

    async def stop(self, parts: Iterable[Supervised], *, seconds: float) -> None:
        """With SIGTERM, and SIGKILL when the time is up."""
        stopping = list(parts)
        for part in stopping:
            self._unwant(part)
            if part.is_alive:
                self._forks.signal(part.name, signal.SIGTERM)
                # One that was stopped where it stood would hear nothing.
                self._forks.signal(part.name, signal.SIGCONT)
        deadline = asyncio.get_running_loop().time() + seconds
        for part in stopping:
            await self._see_end(part, deadline - asyncio.get_running_loop().time())

    def signal(self, part: Supervised, number: int) -> None:
        self._forks.signal(part.name, number)

    def order(self, part: Supervised, order: Message) -> None:
        self._forks.order(part.name, order)

    def _unwant(self, part: Supervised) -> None:
        part.is_wanted = False
        if part.again is not None:
            part.again.cancel()
            part.again = None

    async def _see_end(self, part: Supervised, seconds: float) -> None:
        if part.is_alive and not await wait_until_set(part.ended, seconds=max(0.0, seconds)):
            self._forks.signal(part.name, signal.SIGKILL)
            await wait_until_set(part.ended, seconds=_KILL_SECONDS)

    def _start(self, part: Supervised) -> None:
        part.again = None
        part.failure = ""
        part.is_alive = True
        part.ended.clear()
        part.ready.clear()
        part.started_at = asyncio.get_running_loop().time()
        self._forks.start(part.name, part.kind, part.order, part.log)

    def _take(self, news: Message) -> None:
        part = self.parts.get(news["name"])
        if part is None:
            return
        if "told" in news:
            self._hear(part, news["told"])
        elif "ended" in news:
            self._end(part, news["ended"])
        else:
            part.pid = news["pid"]

    def _hear(self, part: Supervised, told: dict[str, Any]) -> None:
        if "ready" in told:
            part.answer = told["ready"]
            part.ready.set()
        elif "failed" in told:
            part.failure = told["failed"]
        elif "left" in told:
            part.left = told["left"]

    def _end(self, part: Supervised, code: int) -> None:
        part.pid = 0
        part.is_alive = False
        part.ended.set()
        if not part.is_wanted or not self.is_up:
            return
        loop = asyncio.get_running_loop()
        if loop.time() - part.started_at > _WELL_SECONDS:
            part.delay_seconds = _FIRST_DELAY_SECONDS
        delay, part.delay_seconds = part.delay_seconds, min(part.delay_seconds * 2, _MOST_DELAY_SECONDS)
        part.restarts += 1
        part.again = loop.call_later(delay, self._start, part)
        self._say(f"{part.name} {_how(part, code)}; it is started again in {delay:g} s (its log: {part.log})")


def _how(part: Supervised, code: int) -> str:
    if part.failure:
        return f"ended: {part.failure}"
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
