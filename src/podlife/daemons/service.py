"""What every controller daemon has around its work: leader election, health checks, metrics and events.

The work runs while the lease is held. On shutdown in-flight calls complete, events are sent and the lease is released.
A lost lease, a missing permission or refused credentials raise PodlifeError. The work itself is left to the daemons.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from podlife.client import LEASES, Client, Connection, TokenFileAuth
from podlife.clock import Clock, SystemClock
from podlife.controller import Health, HealthServer, Index, LeaderElector, LivenessCheck, make_identity
from podlife.daemons.connection import connected
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.errors import NotFoundError
from podlife.events import Recorder

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 3.0
_READY_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """The defaults are kube-controller-manager's."""

    lease_name: str
    # Empty: the pod's own namespace, or kube-system outside a cluster.
    lease_namespace: str = ""
    # Empty: HOST_UUID.
    identity: str = ""
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    connection: Connection
    # None: no leader election, the work starts at once.
    election: ElectionSettings | None = None
    # Host and port for health and metrics; None for neither.
    listen: tuple[str, int] | None = None
    request_timeout_seconds: float = 60.0
    # Address of a page of `podlife ui`, for the index of health and metrics.
    page_url: str = ""


class ServiceWork(Protocol):
    """What runs while the lease is held."""

    @property
    def complaint(self) -> str:
        """Why it is not working; empty when it is."""

    @property
    def recorders(self) -> Sequence[Recorder]:
        """Recorders of its own, which it runs itself."""

    async def run(self) -> None: ...

    def export(self, registry: CollectorRegistry) -> None:
        """Register its metrics."""


@dataclass(frozen=True, slots=True)
class Service:
    """`name` appears in events and metrics, `rights` is the manifest with the permissions it needs, `log_fields` are
    logged at start, `standby_message` is logged when another process holds the lease."""

    name: str
    rights: str
    make: Callable[[Client, Clock, Recorder], ServiceWork]
    log_fields: Mapping[str, Any] = field(default_factory=dict)
    standby_message: str = ""
    # Shown on the index of health and metrics.
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Parts:
    work: ServiceWork
    recorder: Recorder
    elector: LeaderElector | None

    async def run(self) -> None:
        if self.elector is None:
            await self.work.run()
        else:
            await self.elector.run(self.work.run)


async def run_service(
    service: Service,
    settings: ServiceSettings,
    *,
    on_ready: Callable[[], None] | None = None,
    shutdown: Shutdown = never_stopped,
) -> None:
    """Run until `shutdown` or cancellation; after a cancellation, events that were not sent yet may be lost. `on_ready`
    is called once the work has no complaint left. Raises PodlifeError if it cannot work or loses the lease."""
    connection = settings.connection
    timeout_seconds = settings.request_timeout_seconds
    async with connected(connection, timeout_seconds=timeout_seconds, rights=service.rights) as client:
        await _check_access(settings.election, connection, client)
        parts = _make_parts(service, settings, client)
        elector = parts.elector
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(parts.recorder.run(), name="events")]
            if settings.listen is not None:
                links = {"page of the cluster": settings.page_url} if settings.page_url else {}
                index = Index(service.name, links, service.notes)
                beside += await _start_health(group, settings.listen, index, client, parts)
            if on_ready is not None:
                beside.append(group.create_task(_report_ready(parts.work, on_ready), name="ready"))
            log.info("watching over %s", connection.server, extra=dict(service.log_fields))
            work = group.create_task(parts.run(), name=service.name)
            has_led = await _until_shutdown(work, elector, shutdown)
            await parts.recorder.flush(seconds=_FLUSH_SECONDS)
            for task in beside:
                task.cancel()
    # A lease that could not be released has been logged by the elector.
    is_released = has_led and elector is not None and elector.leader != elector.identity
    log.info("ended%s", f", {elector} released" if is_released else "")


def _make_parts(service: Service, settings: ServiceSettings, client: Client) -> _Parts:
    clock = SystemClock()
    recorder = Recorder(client, service.name, clock=clock)
    work = service.make(client, clock, recorder)
    election = settings.election
    if election is None:
        return _Parts(work, recorder, None)
    identity = election.identity or make_identity()

    def notice(leader: str) -> None:
        if service.standby_message and leader != identity:
            log.info(service.standby_message)

    elector = LeaderElector(
        client,
        *_lease_of(election, settings.connection),
        identity,
        lease_seconds=election.lease_seconds,
        renew_seconds=election.renew_seconds,
        retry_seconds=election.retry_seconds,
        clock=clock,
        recorder=recorder,
        on_new_leader=notice,
    )
    return _Parts(work, recorder, elector)


def _lease_of(settings: ElectionSettings, connection: Connection) -> tuple[str, str]:
    """Namespace and name of the lease.

    All processes that do the same work in one cluster must agree on one lease. A pod may only use its own namespace;
    outside the cluster the namespace of the current context would differ from user to user."""
    is_pod = isinstance(connection.auth, TokenFileAuth)
    namespace = settings.lease_namespace or (connection.namespace if is_pod else "kube-system")
    return namespace, settings.lease_name


async def _start_health(
    group: asyncio.TaskGroup, listen: tuple[str, int], index: Index, client: Client, parts: _Parts
) -> list[asyncio.Task[None]]:
    liveness = LivenessCheck(client)
    registry = _registry(index.title, client, parts)
    server = HealthServer(*listen, _checks(parts, liveness), registry=registry, index=index)
    tasks = [group.create_task(server.run(), name="health")]
    if parts.elector is None:
        tasks.append(group.create_task(liveness.run(), name="liveness"))
    log.info("health and metrics are on %s", ", ".join(await server.addresses()))
    return tasks


async def _check_access(election: ElectionSettings | None, connection: Connection, client: Client) -> None:
    """Fail at start if the server is unreachable, or refuses the credentials or the lease. Later outages only delay the
    work, however long they take."""
    if election is None:
        await client.request("GET", "/version")
        return
    namespace, name = _lease_of(election, connection)
    with contextlib.suppress(NotFoundError):
        await client.get(LEASES, name, namespace)


async def _report_ready(work: ServiceWork, on_ready: Callable[[], None]) -> None:
    while work.complaint:  # noqa: ASYNC110 - caches do not signal that all of them have synced
        await asyncio.sleep(_READY_POLL_SECONDS)
    on_ready()


async def _until_shutdown(
    work: asyncio.Task[None], elector: LeaderElector | None, shutdown: Shutdown
) -> bool:
    """Return when the work has ended after a shutdown, with whether it held the lease until then. Any other end of the
    work ends the task group."""
    has_led = False

    def stop() -> None:
        nonlocal has_led
        has_led = elector is not None and elector.is_leader
        log.info("shutting down: finishing in-flight requests")
        work.cancel()

    with shutdown(stop):
        await asyncio.wait((work,))
    return has_led


def _checks(parts: _Parts, liveness: LivenessCheck) -> Health:
    health = Health()
    elector, work = parts.elector, parts.work

    def check_caches() -> str:
        return "" if elector is not None and not elector.is_leader else work.complaint

    health.add("caches", check_caches)
    if elector is None:
        # With a lease to renew, a frozen server is noticed anyway.
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
