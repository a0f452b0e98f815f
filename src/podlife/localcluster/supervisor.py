"""Keeps the components of a local cluster running: one that ends is restarted, with a growing delay.

A component that ends before the cluster is up fails the start, with its own reason: a user who names a port that is
taken reads that, not that something is retried. Which components there are, and their order, is left to `LocalCluster`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from podlife.aio import wait_until_set
from podlife.errors import PodlifeError
from podlife.localcluster.forkserver import ForkServer, Message

_FIRST_DELAY_SECONDS, _MOST_DELAY_SECONDS = 0.5, 30.0
# After running for so long, an end is a new failure and not the last one again.
_WELL_SECONDS = 60.0
_KILL_SECONDS = 5.0


class Component:
    """One component across restarts. `left` is the work that it reports as remaining."""

    def __init__(self, name: str, kind: str, order: Message, log: Path) -> None:
        self.name = name
        self.kind = kind
        self.order = order
        self.log = log
        self.pid = 0
        self.restarts = 0
        self.is_wanted = False
        # Since its start was requested, even before its process is known.
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


class ComponentSupervisor:
    def __init__(self, fork_server: ForkServer, say: Callable[[str], None]) -> None:
        self.components: dict[str, Component] = {}
        # Whether a component that ends is restarted.
        self.is_up = False
        self._fork_server = fork_server
        self.say = say

    async def run(self) -> None:
        """Raises PodlifeError when the fork server is gone."""
        await self._fork_server.run(self._take)
        raise PodlifeError("the process that starts the parts has ended: start `podlife up` again")

    def start(self, component: Component) -> None:
        """Start a component, even one that was stopped before."""
        self.components[component.name] = component
        component.is_wanted = True
        component.delay_seconds = _FIRST_DELAY_SECONDS
        if not component.is_alive:
            self._start(component)

    async def wait_ready(self, component: Component, *, seconds: float, is_ready: Callable[[], bool]) -> None:
        """Raises PodlifeError when it is not ready in time, or ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not (component.ready.is_set() or is_ready()):
            if component.ended.is_set():
                raise PodlifeError(
                    component.failure or f"{component.name} has ended: {component.log} says why"
                )
            if loop.time() > deadline:
                raise PodlifeError(
                    f"{component.name} is not ready after {seconds:.0f} s: {component.log} may say why"
                )
            await asyncio.sleep(0.01)

    async def stop(self, components: Iterable[Component], *, seconds: float) -> None:
        """Stop components with SIGTERM, and with SIGKILL when the time is up."""
        stopping = list(components)
        for component in stopping:
            component.is_wanted = False
            if component.again is not None:
                component.again.cancel()
                component.again = None
            if component.is_alive:
                self._fork_server.signal(component.name, signal.SIGTERM)
                # A process stopped by SIGSTOP does not handle other signals.
                self._fork_server.signal(component.name, signal.SIGCONT)
        deadline = asyncio.get_running_loop().time() + seconds
        for component in stopping:
            await self._await_end(component, deadline - asyncio.get_running_loop().time())

    def signal(self, component: Component, number: int) -> None:
        self._fork_server.signal(component.name, number)

    def order(self, component: Component, order: Message) -> None:
        self._fork_server.order(component.name, order)

    async def _await_end(self, component: Component, seconds: float) -> None:
        if component.is_alive and not await wait_until_set(component.ended, seconds=max(0.0, seconds)):
            self._fork_server.signal(component.name, signal.SIGKILL)
            await wait_until_set(component.ended, seconds=_KILL_SECONDS)

    def _start(self, component: Component) -> None:
        component.again = None
        component.failure = ""
        component.is_alive = True
        component.ended.clear()
        component.ready.clear()
        component.started_at = asyncio.get_running_loop().time()
        self._fork_server.start(component.name, component.kind, component.order, component.log)

    def _take(self, news: Message) -> None:
        component = self.components.get(news["name"])
        if component is None:
            return
        if "told" in news:
            self._hear(component, news["told"])
        elif "ended" in news:
            self._end(component, news["ended"])
        else:
            component.pid = news["pid"]

    def _hear(self, component: Component, told: dict[str, Any]) -> None:
        if "ready" in told:
            component.answer = told["ready"]
            component.ready.set()
        elif "failed" in told:
            component.failure = told["failed"]
        elif "left" in told:
            component.left = told["left"]

    def _end(self, component: Component, code: int) -> None:
        component.pid = 0
        component.is_alive = False
        component.ended.set()
        if not component.is_wanted or not self.is_up:
            return
        loop = asyncio.get_running_loop()
        if loop.time() - component.started_at > _WELL_SECONDS:
            component.delay_seconds = _FIRST_DELAY_SECONDS
        delay, component.delay_seconds = (
            component.delay_seconds,
            min(component.delay_seconds * 2, _MOST_DELAY_SECONDS),
        )
        component.restarts += 1
        component.again = loop.call_later(delay, self._start, component)
        self.say(
            f"{component.name} {_how(component, code)}; it is started again in {delay:g} s (its log: {component.log})"
        )


def _how(component: Component, code: int) -> str:
    if component.failure:
        return f"ended: {component.failure}"
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
