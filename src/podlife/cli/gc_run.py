"""`podlife gc run`: the collector as the work of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podlife.cli.service import Options, Service, run_service
from podlife.client import Client
from podlife.clock import Clock
from podlife.events import Recorder
from podlife.podgc import Collector, Settings
from podlife.workqueue import Queue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Collecting", "run_collector"]


def run_collector(options: Options, settings: Settings) -> None:
    """Collect until a signal comes. Raises PodlifeError when it cannot, or may not any more."""

    def make(client: Client, clock: Clock, recorder: Recorder) -> Collecting:
        return Collecting(client, settings, clock, recorder)

    run_service(Service("podlife-gc", "deploy/gc/rbac.yaml", make, _told(settings)), options)


class Collecting:
    def __init__(self, client: Client, settings: Settings, clock: Clock, recorder: Recorder) -> None:
        self._collector = Collector(client, settings, clock=clock, recorder=recorder)
        self.queue: Queue[Any] = self._collector.queue

    @property
    def complaint(self) -> str:
        return "" if self._collector.is_fit else "not synced, or the server is silent: nothing is deleted"

    @property
    def recorders(self) -> tuple[Recorder, ...]:
        return ()

    async def run(self) -> None:
        await self._collector.run()

    def export(self, registry: CollectorRegistry) -> None:
        from podlife.controller import export_queues

        self.export_own(registry)
        export_queues(registry, self.queue)

    def export_own(self, registry: CollectorRegistry) -> None:
        """What nobody else has."""
        from podlife.cli.gc_metrics import GcMetrics

        GcMetrics(self._collector).register(registry)


def _told(settings: Settings) -> dict[str, Any]:
    return {
        "threshold": settings.threshold,
        "quarantine_seconds": settings.quarantine_seconds,
        "period_seconds": settings.period_seconds,
        "collect": ",".join(sorted(settings.collect)),
    }
