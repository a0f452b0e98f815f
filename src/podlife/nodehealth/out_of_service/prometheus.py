"""The metrics of the out-of-service controller for Prometheus, read at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podlife.nodehealth.out_of_service.metrics import OutOfServiceMetrics

_Counted = Iterable[tuple[tuple[str, ...], int]]
"""A number for each combination of label values."""


def export_out_of_service(registry: CollectorRegistry, metrics: OutOfServiceMetrics) -> None:
    registry.register(_Families(metrics))


class _Families(Collector):
    def __init__(self, metrics: OutOfServiceMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield CounterMetricFamily(
            "podlife_out_of_service_tainted_total", "Nodes that were set out of service.", metrics.tainted
        )
        counters: Iterable[tuple[str, str, tuple[str, ...], _Counted]] = (
            ("removed", "Taints that were taken off.", ("reason",), _keyed(metrics.removed)),
            ("refused", "Refusals that were told.", ("reason",), _keyed(metrics.refused)),
            ("checks", "Fence checks that were asked.", ("check", "result"), metrics.checks.items()),
        )
        for name, help_, labels, counts in counters:
            family = CounterMetricFamily(f"podlife_out_of_service_{name}_total", help_, labels=labels)
            for values, number in counts:
                family.add_metric(values, number)
            yield family
        nodes = GaugeMetricFamily(
            "podlife_out_of_service_nodes", "Nodes with the taint, by who set it.", labels=("by",)
        )
        nodes.add_metric(("podlife",), metrics.nodes["ours"])
        nodes.add_metric(("others",), metrics.nodes["somebody else's"])
        yield nodes


def _keyed(counts: Mapping[str, int]) -> _Counted:
    return [((key,), number) for key, number in counts.items()]
