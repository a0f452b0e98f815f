"""A controller as a process, with all that one has around it in a cluster: the lease, health, metrics, the log.

It works while it holds the lease. A signal ends it with 0 after the calls under way; the lease is given back. A
lease that was lost, a right that is missing or credentials that the server refuses end it with 1 and one line. What
the work is, is for the commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import LEASES, Client, Connection
from podlife.clock import Clock, SystemClock
from podlife.controller import Health, HealthServer, LeaderElector, LivenessCheck
from podlife.daemons import event_loop as loop
from podlife.daemons.election import ElectionOptions, lease_of, make_elector
from podlife.daemons.logs import set_up_logs
from podlife.errors import NotFoundError
from podlife.events import Recorder

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Options", "Service", "Work", "run_service"]

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """What a user says about the process, whatever its work is."""

    connection: ConnectionOptions
    election: ElectionOptions
    # Host and port for health and metrics; None for neither.
    address: tuple[str, int] | None
    verbosity: int


class Work(Protocol):
    """What is done while the lease is held."""

    @property
    def complaint(self) -> str:
        """Why it is not at work; empty when it is."""

    @property
    def recorders(self) -> Sequence[Recorder]:
        """Those of its own; it runs them itself."""

    async def run(self) -> None: ...

    def export(self, registry: CollectorRegistry) -> None:
        """Show its numbers."""


@dataclass(frozen=True, slots=True)
class Service:
    """`name` stands in its events and metrics, `rights` is the file that has all the rights it needs, `told` is what
    the log says of its settings, `beside` what it says when another process holds the lease."""

    name: str
    rights: str
    make: Callable[[Client, Clock, Recorder], Work]
    told: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""


@dataclass(frozen=True, slots=True)
class _Parts:
    work: Work
    recorder: Recorder
    elector: LeaderElector | None

    async def run(self) -> None:
        if self.elector is None:
            await self.work.run()
        else:
            await self.elector.run(self.work.run)


def run_service(service: Service, options: Options) -> None:
    """Work until a signal comes. Raises PodlifeError when it cannot, or may not any more."""
    connection = load_connection(options.connection)
    set_up_logs(options.verbosity)
    loop.run(_run(service, options, connection))


async def _run(service: Service, options: Options, connection: Connection) -> None:
    async with connected(options.connection, connection, rights=service.rights) as client:
        await _greet(options.election, connection, client)
        clock = SystemClock()
        recorder = Recorder(client, service.name, clock=clock)
        elector = make_elector(
            options.election, connection, client, clock=clock, recorder=recorder, beside=service.beside
        )
        parts = _Parts(service.make(client, clock, recorder), recorder, elector)
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(recorder.run(), name="events")]
            if options.address is not None:
                registry = _registry(service.name, client, parts)
                liveness = LivenessCheck(client)
                server = HealthServer(*options.address, _checks(parts, liveness), registry=registry)
                beside.append(group.create_task(server.run(), name="health"))
                if elector is None:
                    beside.append(group.create_task(liveness.run(), name="liveness check"))
                log.info("health and metrics are on %s", ", ".join(await server.addresses()))
            log.info("watching over %s", connection.server, extra=dict(service.told))
            has_led = await _until_signal(group.create_task(parts.run(), name=service.name), elector)
            await recorder.flush(seconds=_FLUSH_SECONDS)
            for task in beside:
                task.cancel()
    # Where it could not be given back that is said already.
    is_given_back = has_led and elector is not None and elector.leader != elector.identity
    log.info("ended%s", f", and {elector} is given back" if is_given_back else "")


async def _greet(election: ElectionOptions, connection: Connection, client: Client) -> None:
    """Whoever starts it is told at once of a server that is not there, does not know them or does not let them.
    From then on it waits for the server, however long that is away."""
    if not election.leader_elect:
        await client.request("GET", "/version")
        return
    namespace, name = lease_of(election, connection)
    with contextlib.suppress(NotFoundError):
        await client.get(LEASES, name, namespace)


async def _until_signal(work: asyncio.Task[None], elector: LeaderElector | None) -> bool:
    """Come back when the work has ended because a signal came; says whether it was led until then. What else ends it
    ends the whole group."""
    has_led = False

    def stop() -> None:
        nonlocal has_led
        has_led = elector is not None and elector.is_leader
        log.info("told to stop: finishing the calls under way")
        work.cancel()

    with loop.stopped_by_signals(stop):
        await asyncio.wait((work,))
    return has_led


def _checks(parts: _Parts, liveness: LivenessCheck) -> Health:
    health = Health()
    elector, work = parts.elector, parts.work

    def check_caches() -> str:
        return "" if elector is not None and not elector.is_leader else work.complaint

    health.add("caches", check_caches)
    if elector is None:
        # Whoever has to renew a lease notices without that a server has frozen.
        health.add("server", lambda: liveness.complaint)
    else:
        health.add("lease", lambda: elector.complaint)
    return health


def _registry(name: str, client: Client, parts: _Parts) -> CollectorRegistry:
    from prometheus_client import CollectorRegistry, ProcessCollector

    from podlife.controller import export_client, export_election

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    parts.work.export(registry)
    export_client(registry, client.limiter, parts.recorder, *parts.work.recorders)
    if parts.elector is not None:
        export_election(registry, name, parts.elector)
    return registry
