"""The pod garbage collector as a daemon, and as one controller of a control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podlife.client import Client
from podlife.clock import Clock
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.daemons.service import Service, ServiceSettings, run_service
from podlife.events import Recorder
from podlife.podgc import Collector, Settings
from podlife.podgc.finalizers.controller import FinalizerController
from podlife.podgc.finalizers.remover import FinalizerRemover
from podlife.podgc.guards.plan_filter import census_of
from podlife.podgc.policy_reloader import PolicyReloader
from podlife.workqueue import Queue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from podlife.podgc.archive import Archive, ArchiveStep, LogSettings

_NAME = "podlife-gc"
_NOTES = (
    "`podlife gc plan` shows what this collector deletes now and later, and what its guards hold back.",
    "`podlife ui` serves a page with this plan, and prints its address, which has a token.",
)


@dataclass(frozen=True, slots=True)
class ReloadedPolicy:
    """A policy file that is reloaded when it changes, and the settings it is applied to."""

    path: Path
    flags: Settings


@dataclass(frozen=True, slots=True)
class PodArchive:
    """An open archive that keeps each pod before it is deleted. The daemon closes it."""

    archive: Archive
    logs: LogSettings

    def step(self, client: Client, clock: Clock) -> ArchiveStep:
        from podlife.podgc.archive import ArchiveStep

        return ArchiveStep(client, self.archive, clock, self.logs)


@dataclass(frozen=True, slots=True)
class GcDaemonSettings:
    service: ServiceSettings
    collector: Settings = field(default_factory=Settings)
    archive: PodArchive | None = None
    # Finalizers to remove from pods that they hold.
    remove_finalizers: frozenset[str] = frozenset()
    policy_file: ReloadedPolicy | None = None


async def run(
    settings: GcDaemonSettings,
    *,
    on_ready: Callable[[], None] | None = None,
    shutdown: Shutdown = never_stopped,
) -> None:
    """Collect pods until `shutdown` or cancellation. Raises PodlifeError if it cannot work or loses the lease."""

    def make(client: Client, clock: Clock, recorder: Recorder) -> PodGarbageCollector:
        return PodGarbageCollector(
            client,
            settings.collector,
            clock,
            recorder,
            settings.archive,
            settings.remove_finalizers,
            settings.policy_file,
        )

    service = Service(_NAME, "deploy/gc/rbac.yaml", make, _log_fields(settings), notes=_NOTES)
    await run_service(service, settings.service, on_ready=on_ready, shutdown=shutdown)


class PodGarbageCollector:
    """The collector with its optional parts: an archive, finalizer removal, a reloaded policy file."""

    name = "pod-garbage-collector-controller"

    def __init__(
        self,
        client: Client,
        settings: Settings,
        clock: Clock,
        recorder: Recorder,
        archive: PodArchive | None = None,
        remove_finalizers: frozenset[str] = frozenset(),
        policy_file: ReloadedPolicy | None = None,
    ) -> None:
        self._archive_step = None if archive is None else archive.step(client, clock)
        steps = () if self._archive_step is None else (self._archive_step,)
        self._collector = Collector(client, settings, clock=clock, recorder=recorder, steps=steps)
        self.queue: Queue[Any] = self._collector.queue
        self._reloader = (
            PolicyReloader(self._collector, policy_file.path, policy_file.flags, recorder)
            if policy_file
            else None
        )
        self._finalizers: FinalizerController | None = None
        if remove_finalizers:
            collector = self._collector
            remover = FinalizerRemover(
                client,
                clock,
                remove_finalizers,
                lambda: collector.settings,
                steps=steps,
                annotations=lambda: census_of(collector.index).annotations,
            )
            self._finalizers = FinalizerController(collector, remover, recorder)

    @property
    def complaint(self) -> str:
        return "" if self._collector.is_fit else "not synced, or the server is silent: nothing is deleted"

    @property
    def recorders(self) -> tuple[Recorder, ...]:
        return ()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                if self._finalizers is not None:
                    group.create_task(self._finalizers.run(), name="podgc-finalizers")
                if self._reloader is not None:
                    group.create_task(self._reloader.run(), name="podgc-policy")
                await self._collector.run()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            if self._archive_step is not None:
                await self._archive_step.close()

    def export(self, registry: CollectorRegistry) -> None:
        from podlife.controller import export_queues

        self.export_own(registry)
        export_queues(registry, self.queue)

    def export_own(self, registry: CollectorRegistry) -> None:
        """All metrics but those of the queue."""
        from podlife.podgc.prometheus import GcMetrics

        registry.register(GcMetrics(self._collector, self._archive_step, self._finalizers))


def _log_fields(settings: GcDaemonSettings) -> dict[str, Any]:
    """Settings that explain which pods are collected, such as the policy file."""
    collector, file = settings.collector, settings.policy_file
    guards, policy = collector.guards, collector.policy
    rules = {"policy": str(file.path), "rules": len(policy.rules)} if file and policy else {}
    guarded = {} if guards is None else {"observing": guards.is_observing, "forced": collector.is_forced}
    return {
        **rules,
        **guarded,
        "threshold": collector.threshold,
        "quarantine_seconds": collector.quarantine_seconds,
        "period_seconds": collector.period_seconds,
        "collect": ",".join(sorted(collector.collect)),
    }
