"""The metrics of node health for Prometheus, under kube-controller-manager's own names, read at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from podlife.controller.metrics import histogram
from podlife.nodehealth.metrics import EvictionMetrics, NodeMetrics
from podlife.workqueue import Distribution


def export_node_lifecycle(registry: CollectorRegistry, metrics: NodeMetrics) -> None:
    def families() -> Iterator[Metric]:
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

    registry.register(_Families(families))


def export_taint_eviction(registry: CollectorRegistry, metrics: EvictionMetrics) -> None:
    def families() -> Iterator[Metric]:
        yield CounterMetricFamily(
            "taint_eviction_controller_pod_deletions_total",
            "Pods that were deleted for the taints of their nodes.",
            metrics.deletions,
        )
        yield _histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "From the time a pod was due to its deletion.",
            metrics.delay_seconds,
        )

    registry.register(_Families(families))


class _Families(Collector):
    def __init__(self, read: Callable[[], Iterator[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        return self._read()


def _histogram(name: str, help_: str, distribution: Distribution) -> Metric:
    family = HistogramMetricFamily(name, help_, labels=[])
    histogram(family, [], distribution)
    return family
