"""A simulation as a daemon: hollow nodes, then pods, then what the scenario says, until shutdown or its duration ends.

When it ends, it deletes what it has created, even after a failure: the pods of this run, its nodes and their leases.
Progress goes to a `SimulationReporter`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from podlife.aio import wait_until_set
from podlife.client import Client, Connection, Limiter
from podlife.clock import SystemClock
from podlife.daemons.connection import connected
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.errors import PodlifeError
from podlife.kubelet.hollow import (
    HollowNodes,
    HollowSettings,
    Scenario,
    create_pods,
    delete_nodes,
    delete_pods,
)

_RIGHTS = "docs/sim.md"
# Hundreds of nodes register per second: exceeding this has another cause.
_READY_SECONDS, _READY_SECONDS_EACH = 60.0, 0.1
_CLEAN_SECONDS, _CLEAN_SECONDS_EACH = 60.0, 0.02
_POLL_SECONDS = 0.05
_REQUEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    nodes: int = 1
    pods: int = 0
    scenario: Scenario = field(default_factory=Scenario)
    # From when all nodes are ready; 0: until shutdown.
    duration_seconds: float = 0.0
    # The nodes are NAME-0, NAME-1 …
    name: str = "sim"
    namespace: str = "default"
    max_pods: int = 110
    # Whether pods get events, and whether their ends are reported without delay.
    has_events: bool = False
    has_quick_ends: bool = False
    # Keep nodes and pods at the end.
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class SimulationDaemonSettings:
    connection: Connection
    simulation: SimulationSettings = field(default_factory=SimulationSettings)
    request_timeout_seconds: float = 60.0


class SimulationReporter(Protocol):
    """Shows how a simulation proceeds."""

    async def show_progress(self, fleet: HollowNodes) -> None:
        """Run until cancelled."""

    def nodes_ready(self) -> None: ...

    def pods_created(self) -> None: ...

    def out_of_time(self, created: int) -> None:
        """The duration ended before all pods were created."""

    def cleaning_up(self) -> None: ...

    def left_behind(self, reason: str, run_name: str) -> None:
        """Not everything could be deleted; pods carry the name of the run as a label."""

    def finished(self, fleet: HollowNodes, created: int, seconds: float) -> None: ...


async def run(
    settings: SimulationDaemonSettings, reporter: SimulationReporter, *, shutdown: Shutdown = never_stopped
) -> None:
    """Simulate until `shutdown` or the end of the duration. Raises PodlifeError when nodes cannot be registered."""
    timeout_seconds = settings.request_timeout_seconds
    async with connected(settings.connection, timeout_seconds=timeout_seconds, rights=_RIGHTS) as client:
        await client.with_timeout(10.0).request("GET", "/version")
        await Simulation(client, settings.simulation, reporter).run(shutdown)


class Simulation:
    def __init__(self, client: Client, settings: SimulationSettings, reporter: SimulationReporter) -> None:
        fleet = HollowSettings(
            settings.nodes,
            settings.name,
            max_pods=settings.max_pods,
            tells_events=settings.has_events,
            tells_ends=not settings.has_quick_ends,
        )
        # Own limiter: status updates of nodes must not wait behind thousands of pod creations.
        self._client = client.with_timeout(_REQUEST_SECONDS, limiter=Limiter())
        self._settings = settings
        self._reporter = reporter
        self._fleet = HollowNodes(client, fleet, SystemClock(), settings.scenario)
        # Unique to this run: another may be in progress, or have been killed.
        self._run_name = f"{settings.name}-{secrets.token_hex(3)}"
        self._created = 0
        self._is_stopped = asyncio.Event()

    async def run(self, shutdown: Shutdown = never_stopped) -> None:
        event_loop = asyncio.get_running_loop()
        began = event_loop.time()
        with shutdown(self._is_stopped.set):
            try:
                async with self._running():
                    await self._play()
            finally:
                if not self._settings.is_kept:
                    await self._clean_up()
        self._reporter.finished(self._fleet, self._created, event_loop.time() - began)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        """The nodes and the progress display; a failure of either ends the simulation."""
        async with asyncio.TaskGroup() as group:
            fleet = group.create_task(self._fleet.run(), name="fleet")
            shown = group.create_task(self._reporter.show_progress(self._fleet), name="progress")
            try:
                yield
            finally:
                for task in (fleet, shown):
                    task.cancel()

    async def _play(self) -> None:
        settings = self._settings
        if not await self._wait_for_nodes():
            return
        self._reporter.nodes_ready()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.duration_seconds or None):
                if not settings.pods or await self._create_pods():
                    await self._is_stopped.wait()
            return
        if self._created < settings.pods:
            self._reporter.out_of_time(self._created)

    async def _wait_for_nodes(self) -> bool:
        """False when it was stopped first."""
        seconds = _READY_SECONDS + _READY_SECONDS_EACH * self._settings.nodes
        deadline = asyncio.get_running_loop().time() + seconds
        while self._fleet.ready < self._settings.nodes:
            if await wait_until_set(self._is_stopped, seconds=_POLL_SECONDS):
                return False
            if asyncio.get_running_loop().time() > deadline:
                nodes = self._settings.nodes
                raise PodlifeError(
                    f"only {self._fleet.ready} of {nodes} node{'' if nodes == 1 else 's'} could be registered in "
                    f"{seconds:.0f} s: look with -v 1 for what keeps the others"
                )
        return True

    async def _create_pods(self) -> bool:
        """False when it was stopped first."""
        settings, event_loop = self._settings, asyncio.get_running_loop()

        def asked(namespace: str, name: str) -> None:
            self._created += 1
            self._fleet.tally.ask(namespace, name, event_loop.time())

        nodes = list(self._fleet.nodes)
        async with asyncio.TaskGroup() as group:
            creating = group.create_task(
                create_pods(self._client, settings.namespace, self._run_name, nodes, settings.pods, asked),
                name="creating pods",
            )
            stopped = group.create_task(self._is_stopped.wait(), name="stop")
            await asyncio.wait((creating, stopped), return_when=asyncio.FIRST_COMPLETED)
            is_done = creating.done()
            creating.cancel()
            stopped.cancel()
        if is_done:
            self._reporter.pods_created()
        return is_done

    async def _clean_up(self) -> None:
        settings = self._settings
        self._reporter.cleaning_up()
        seconds = _CLEAN_SECONDS + _CLEAN_SECONDS_EACH * (settings.pods + settings.nodes)
        try:
            async with asyncio.timeout(seconds):
                if settings.pods:
                    await delete_pods(self._client, settings.namespace, self._run_name)
                nodes = [(each.name, each.uid) for each in self._fleet.nodes.values() if each.uid]
                if nodes:
                    await delete_nodes(self._client, nodes)
        except (TimeoutError, PodlifeError, ExceptionGroup) as error:
            reason = f"it took longer than {seconds:.0f} s" if isinstance(error, TimeoutError) else str(error)
            self._reporter.left_behind(reason, self._run_name)
