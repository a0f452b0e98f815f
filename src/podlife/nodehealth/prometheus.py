"""Prometheus metrics of node health, read at each scrape, under kube-controller-manager's names where it has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from podlife.controller.metrics import histogram
from podlife.nodehealth.metrics import EvictionMetrics, NodeMetrics, OutOfServiceMetrics
from podlife.workqueue import Distribution

_Counted = Iterable[tuple[tuple[str, ...], int]]
"""A number for each combination of label values."""


def export_node_lifecycle(registry: CollectorRegistry, metrics: NodeMetrics) -> None:
    def families() -> Iterator[Metric]:
        evicted = CounterMetricFamily(
            "node_collector_evictions_total", "Nodes that received a NoExecute taint.", labels=("zone",)
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
            "Duration of a pass over all nodes.",
            metrics.pass_seconds,
        )

    registry.register(_Families(families))


def export_taint_eviction(registry: CollectorRegistry, metrics: EvictionMetrics) -> None:
    def families() -> Iterator[Metric]:
        yield CounterMetricFamily(
            "taint_eviction_controller_pod_deletions_total",
            "Pods deleted because of the taints of their nodes.",
            metrics.deletions,
        )
        yield _histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "From the time a pod was due to its deletion.",
            metrics.delay_seconds,
        )

    registry.register(_Families(families))


def export_out_of_service(registry: CollectorRegistry, metrics: OutOfServiceMetrics) -> None:
    def families() -> Iterator[Metric]:
        yield CounterMetricFamily(
            "podlife_out_of_service_tainted_total", "Nodes that were set out of service.", metrics.tainted
        )
        counters: Iterable[tuple[str, str, tuple[str, ...], _Counted]] = (
            ("removed", "Taints removed.", ("reason",), _keyed(metrics.removed)),
            ("refused", "Refusals reported.", ("reason",), _keyed(metrics.refused)),
            ("checks", "Fence checks run.", ("check", "result"), metrics.checks.items()),
        )
        for name, help_, labels, counts in counters:
            family = CounterMetricFamily(f"podlife_out_of_service_{name}_total", help_, labels=labels)
            for values, number in counts:
                family.add_metric(values, number)
            yield family
        nodes = GaugeMetricFamily(
            "podlife_out_of_service_nodes", "Nodes with the taint, by who set it.", labels=("by",)
        )
        for owner in ("podlife", "others"):
            nodes.add_metric((owner,), metrics.nodes[owner])
        yield nodes

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


def _keyed(counts: Mapping[str, int]) -> _Counted:
    return [((key,), number) for key, number in counts.items()]
