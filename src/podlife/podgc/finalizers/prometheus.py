"""How many finalizers were taken off, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector as Source

from podlife.podgc.finalizers.controller import FinalizerController


class FinalizerMetrics(Source):
    def __init__(self, watch: FinalizerController) -> None:
        self._watch = watch

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        name, help_ = (
            "podlife_gc_removed_finalizers_total",
            "Finalizers that were taken off pods of nodes that are gone.",
        )
        family = CounterMetricFamily(name, help_, labels=("finalizer",))
        for finalizer, number in self._watch.taken.items():
            family.add_metric((finalizer,), number)
        yield family
