"""`podlife gc run`: the collector with everything around it that a controller has in a cluster.

It works while it holds the lease. A signal ends it with 0 after the calls under way; the lease is given back. A
lease that was lost, a right that is missing or credentials that the server refuses end it with 1 and one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podlife.cli import loop
from podlife.cli.connecting import ConnectionOptions, connected, load_connection
from podlife.cli.gc_options import ElectionOptions
from podlife.cli.logs import set_up_logs
from podlife.client import LEASES, Client, Connection, TokenFileAuth
from podlife.clock import SystemClock
from podlife.controller import (
    Health,
    HealthServer,
    LeaderElector,
    export_election,
    export_queues,
    make_identity,
)
from podlife.errors import NotFoundError
from podlife.events import Recorder
from podlife.podgc import Collector, Settings

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Options", "run_collector"]

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    connection: ConnectionOptions
    settings: Settings
    election: ElectionOptions
    # Host and port for health and metrics; None for neither.
    address: tuple[str, int] | None
    verbosity: int


@dataclass(frozen=True, slots=True)
class _Parts:
    client: Client
    collector: Collector
    recorder: Recorder
    elector: LeaderElector | None
    lease: tuple[str, str]

    async def work(self) -> None:
        if self.elector is None:
            await self.collector.run()
        else:
            await self.elector.run(self.collector.run)


def run_collector(options: Options) -> None:
    """Collect until a signal comes. Raises PodlifeError when it cannot, or may not any more."""
    connection = load_connection(options.connection)
    set_up_logs(options.verbosity)
    loop.run(_run(options, connection))


async def _run(options: Options, connection: Connection) -> None:
    async with connected(options.connection, connection) as client:
        parts = _assemble(options, connection, client)
        await _greet(parts)
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(parts.recorder.run(), name="events")]
            if options.address is not None:
                server = HealthServer(*options.address, _checks(parts), registry=_registry(parts))
                beside.append(group.create_task(server.run(), name="health"))
                log.info("health and metrics are on port %d", await server.port())
            log.info("watching over %s", connection.server, extra=_told(options.settings))
            await _until_signal(group.create_task(parts.work(), name="collector"))
            await parts.recorder.flush(seconds=_FLUSH_SECONDS)
            for task in beside:
                task.cancel()


async def _greet(parts: _Parts) -> None:
    """Whoever starts it is told at once of a server that is not there, does not know them or does not let them.
    From then on it waits for the server, however long that is away."""
    if parts.elector is None:
        await parts.client.request("GET", "/version")
        return
    namespace, name = parts.lease
    with contextlib.suppress(NotFoundError):
        await parts.client.get(LEASES, name, namespace)


def _assemble(options: Options, connection: Connection, client: Client) -> _Parts:
    clock = SystemClock()
    recorder = Recorder(client, "podlife-gc", clock=clock)
    collector = Collector(client, options.settings, clock=clock, recorder=recorder)
    election = options.election
    namespace = election.leader_elect_resource_namespace or _lease_namespace(connection)
    lease = (namespace, election.leader_elect_resource_name)
    if not election.leader_elect:
        return _Parts(client, collector, recorder, None, lease)
    elector = LeaderElector(
        client,
        *lease,
        election.leader_elect_identity or make_identity(),
        lease_seconds=election.leader_elect_lease_duration,
        renew_seconds=election.leader_elect_renew_deadline,
        retry_seconds=election.leader_elect_retry_period,
        clock=clock,
        recorder=recorder,
    )
    return _Parts(client, collector, recorder, elector, lease)


def _lease_namespace(connection: Connection) -> str:
    """All who collect one cluster must mean one lease. A pod may use that of its own namespace alone; for others
    the context's namespace would be somebody's habit, not a place to meet."""
    return connection.namespace if isinstance(connection.auth, TokenFileAuth) else "kube-system"


async def _until_signal(work: asyncio.Task[None]) -> None:
    """Come back when the work has ended because a signal came. What else ends it ends the whole group."""

    def stop() -> None:
        log.info("told to stop: finishing the calls under way")
        work.cancel()

    with loop.stopped_by_signals(stop):
        await asyncio.wait((work,))


def _told(settings: Settings) -> dict[str, Any]:
    return {
        "threshold": settings.threshold,
        "quarantine_seconds": settings.quarantine_seconds,
        "period_seconds": settings.period_seconds,
        "collect": ",".join(sorted(settings.collect)),
    }


def _checks(parts: _Parts) -> Health:
    health = Health()
    elector, collector = parts.elector, parts.collector

    def check_caches() -> str:
        if elector is not None and not elector.is_leader:
            return ""
        return "" if collector.is_fit else "not synced, or the server is silent: nothing is deleted"

    health.add("caches", check_caches)
    if elector is not None:
        health.add("lease", lambda: elector.complaint)
    return health


def _registry(parts: _Parts) -> CollectorRegistry:
    from prometheus_client import CollectorRegistry, ProcessCollector

    from podlife.cli.gc_metrics import GcMetrics

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GcMetrics(parts.collector, parts.client.limiter, parts.recorder).register(registry)
    export_queues(registry, parts.collector.queue)
    if parts.elector is not None:
        export_election(registry, "podlife-gc", parts.elector)
    return registry
