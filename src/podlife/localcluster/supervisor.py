"""Keeps the components of a local cluster running: one that ends is restarted, with a growing delay.

A component that ends before the cluster is up fails the start with its own reason: a user who chose a port in use reads
that instead of endless retries. `LocalCluster` decides which components to start, and in which order.
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
# After running this long, the restart delay is reset.
_WELL_SECONDS = 60.0
_KILL_SECONDS = 5.0


class Component:
    """One component across restarts. `left` is the remaining work it reports."""

    def __init__(self, name: str, kind: str, config: Message, log: Path) -> None:
        self.name = name
        self.kind = kind
        self.config = config
        self.log = log
        self.pid = 0
        self.restarts = 0
        self.is_wanted = False
        # From the start request, even before its PID is known.
        self.is_alive = False
        self.started_at = 0.0
        self.answer = ""
        self.failure = ""
        self.left: int | None = None
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.delay_seconds = _FIRST_DELAY_SECONDS
        self.restart_timer: asyncio.TimerHandle | None = None

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
        """Raises PodlifeError if the fork server ends."""
        await self._fork_server.run(self._receive)
        raise PodlifeError("the fork server has ended; run `podlife up` again")

    def start(self, component: Component) -> None:
        """Start a component, even one that was stopped before."""
        self.components[component.name] = component
        component.is_wanted = True
        component.delay_seconds = _FIRST_DELAY_SECONDS
        if not component.is_alive:
            self._start(component)

    async def wait_ready(self, component: Component, *, seconds: float, is_ready: Callable[[], bool]) -> None:
        """Raises PodlifeError if it ends or is not ready in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not (component.ready.is_set() or is_ready()):
            if component.ended.is_set():
                raise PodlifeError(component.failure or f"{component.name} has ended; see {component.log}")
            if loop.time() > deadline:
                raise PodlifeError(
                    f"{component.name} is not ready after {seconds:.0f} s; see {component.log}"
                )
            await asyncio.sleep(0.01)

    async def stop(self, components: Iterable[Component], *, seconds: float) -> None:
        """Stop components with SIGTERM, then with SIGKILL after `seconds`."""
        stopping = list(components)
        for component in stopping:
            component.is_wanted = False
            if component.restart_timer is not None:
                component.restart_timer.cancel()
                component.restart_timer = None
            if component.is_alive:
                self._fork_server.signal(component.name, signal.SIGTERM)
                # A process stopped by SIGSTOP does not handle other signals.
                self._fork_server.signal(component.name, signal.SIGCONT)
        deadline = asyncio.get_running_loop().time() + seconds
        for component in stopping:
            await self._await_end(component, deadline - asyncio.get_running_loop().time())

    def signal(self, component: Component, number: int) -> None:
        self._fork_server.signal(component.name, number)

    def send(self, component: Component, message: Message) -> None:
        self._fork_server.send(component.name, message)

    async def _await_end(self, component: Component, seconds: float) -> None:
        if component.is_alive and not await wait_until_set(component.ended, seconds=max(0.0, seconds)):
            self._fork_server.signal(component.name, signal.SIGKILL)
            await wait_until_set(component.ended, seconds=_KILL_SECONDS)

    def _start(self, component: Component) -> None:
        component.restart_timer = None
        component.failure = ""
        component.is_alive = True
        component.ended.clear()
        component.ready.clear()
        component.started_at = asyncio.get_running_loop().time()
        self._fork_server.start(component.name, component.kind, component.config, component.log)

    def _receive(self, message: Message) -> None:
        component = self.components.get(message["name"])
        if component is None:
            return
        if "report" in message:
            self._update(component, message["report"])
        elif "ended" in message:
            self._end(component, message["ended"])
        else:
            component.pid = message["pid"]

    def _update(self, component: Component, report: dict[str, Any]) -> None:
        if "ready" in report:
            component.answer = report["ready"]
            component.ready.set()
        elif "failed" in report:
            component.failure = report["failed"]
        elif "left" in report:
            component.left = report["left"]

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
        component.restart_timer = loop.call_later(delay, self._start, component)
        self.say(
            f"{component.name} {_how(component, code)}; restarting in {delay:g} s (log: {component.log})"
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
