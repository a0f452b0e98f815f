"""The numbers of node health for Prometheus, read when asked for, under kube-controller-manager's own names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podlife.nodehealth.node_lifecycle import NodeLifecycleController
from podlife.nodehealth.taint_eviction import TaintEvictionController
from podlife.workqueue import Distribution

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["NodeLifecycle", "TaintEviction"]


class NodeLifecycle(NodeLifecycleController):
    def export_own(self, registry: CollectorRegistry) -> None:
        _register(registry, self._families)

    def _families(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        metrics = self.metrics
        evicted = CounterMetricFamily(
            "node_collector_evictions_total", "Nodes that got the taint that evicts.", labels=("zone",)
        )
        for zone, number in metrics.evictions.items():
            evicted.add_metric((zone,), number)
        yield evicted
        size, health, unhealthy = (
            GaugeMetricFamily(f"node_collector_{name}", help_, labels=("zone",))
            for name, help_ in (
                ("zone_size", "Nodes of the zone."),
                ("zone_health", "Ready nodes of the zone, in percent."),
                ("unhealthy_nodes_in_zone", "Nodes of the zone that are not ready."),
            )
        )
        for zone, count in metrics.zones.items():
            size.add_metric((zone,), count.size)
            health.add_metric((zone,), count.percent_ready)
            unhealthy.add_metric((zone,), count.not_ready)
        yield from (size, health, unhealthy)
        yield _histogram(
            "node_collector_update_all_nodes_health_duration_seconds",
            "How long a look at all nodes took.",
            metrics.pass_seconds,
        )


class TaintEviction(TaintEvictionController):
    def export_own(self, registry: CollectorRegistry) -> None:
        _register(registry, self._families)

    def _families(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        yield CounterMetricFamily(
            "taint_eviction_controller_pod_deletions_total",
            "Pods that were deleted for the taints of their nodes.",
            self.metrics.deletions,
        )
        yield _histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "From the time a pod was due to its deletion.",
            self.metrics.delay_seconds,
        )


def _register(registry: CollectorRegistry, read: Callable[[], Iterator[Metric]]) -> None:
    from prometheus_client.registry import Collector

    class Families(Collector):
        def collect(self) -> Iterator[Metric]:
            return read()

    registry.register(Families())


def _histogram(name: str, help_: str, distribution: Distribution) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    from podlife.controller.metrics import histogram

    family = HistogramMetricFamily(name, help_, labels=[])
    histogram(family, [], distribution)
    return family
