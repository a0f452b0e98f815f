"""The archive's numbers for Prometheus, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector as Source

from podlife.podgc.archive import ArchiveStep


class ArchiveMetrics(Source):
    def __init__(self, step: ArchiveStep) -> None:
        self._step = step

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        counts = self._step.counts
        for name, help_, number in (
            ("entries", "Pods that were archived before they were deleted.", counts.entries),
            ("refusals", "Pods that stay because they could not be archived, each time.", counts.refusals),
            ("missing_logs", "Logs that could not be had, noted in their entries.", counts.missing_logs),
        ):
            yield CounterMetricFamily(f"podlife_gc_archive_{name}", help_, float(number))
