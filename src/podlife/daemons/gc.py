"""`podlife gc run`: the collector as the work of a process."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podlife.cli.commands.gc.archive_options import Archiving
from podlife.client import Client
from podlife.clock import Clock, SystemClock
from podlife.daemons.service import Options, Service, run_service
from podlife.events import Recorder
from podlife.podgc import Collector, Settings
from podlife.podgc.finalizers.controller import FinalizerController
from podlife.podgc.finalizers.guarded_remover import remover_under
from podlife.podgc.guards.plan_filter import census_of
from podlife.podgc.policy_reloader import PolicyReloader
from podlife.workqueue import Queue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from podlife.podgc.archive import ArchiveStep

__all__ = ["Collecting", "Following", "run_collector"]


def run_collector(
    options: Options,
    settings: Settings,
    archiving: Archiving | None = None,
    remove_finalizers: frozenset[str] = frozenset(),
    following: Following | None = None,
) -> None:
    """Collect until a signal comes. Raises PodlifeError when it cannot, or may not any more."""
    archive = archiving.open(SystemClock()) if archiving else None

    def make(client: Client, clock: Clock, recorder: Recorder) -> Collecting:
        step = archiving.step(client, archive, clock) if archiving and archive else None
        return Collecting(client, settings, clock, recorder, step, remove_finalizers, following)

    run_service(Service("podlife-gc", "deploy/gc/rbac.yaml", make, _told(settings, following)), options)


@dataclass(frozen=True, slots=True)
class Following:
    """A policy file that is looked at while it runs, and the settings that hold where it says nothing."""

    path: Path
    flags: Settings


class Collecting:
    def __init__(
        self,
        client: Client,
        settings: Settings,
        clock: Clock,
        recorder: Recorder,
        archiving: ArchiveStep | None = None,
        remove_finalizers: frozenset[str] = frozenset(),
        following: Following | None = None,
    ) -> None:
        self._archiving = archiving
        steps = (archiving,) if archiving else ()
        self._collector = Collector(client, settings, clock=clock, recorder=recorder, steps=steps)
        self.queue: Queue[Any] = self._collector.queue
        self._reloading = (
            PolicyReloader(self._collector, following.path, following.flags, recorder) if following else None
        )
        self._finalizers: FinalizerController | None = None
        if remove_finalizers:
            collector = self._collector
            remover = remover_under(
                lambda: collector.settings,
                client,
                clock,
                remove_finalizers,
                steps,
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
                if self._reloading is not None:
                    group.create_task(self._reloading.run(), name="podgc-policy")
                await self._collector.run()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            if self._archiving is not None:
                await self._archiving.close()

    def export(self, registry: CollectorRegistry) -> None:
        from podlife.controller import export_queues

        self.export_own(registry)
        export_queues(registry, self.queue)

    def export_own(self, registry: CollectorRegistry) -> None:
        """What nobody else has."""
        from podlife.podgc.prometheus import GcMetrics

        registry.register(GcMetrics(self._collector, self._archiving, self._finalizers))


def _told(settings: Settings, following: Following | None) -> dict[str, Any]:
    """Which file it is that decides is the first thing that is asked when too much or too little goes."""
    guards, policy = settings.guards, settings.policy
    rules = {"policy": str(following.path), "rules": len(policy.rules)} if following and policy else {}
    guarded = {} if guards is None else {"observing": guards.is_observing, "forced": settings.is_forced}
    return {
        **rules,
        **guarded,
        "threshold": settings.threshold,
        "quarantine_seconds": settings.quarantine_seconds,
        "period_seconds": settings.period_seconds,
        "collect": ",".join(sorted(settings.collect)),
    }
