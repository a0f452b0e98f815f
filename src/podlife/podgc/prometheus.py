"""The collector's numbers for Prometheus, read when they are asked for.

Two counters have kube-controller-manager's own names, so that dashboards and alerts go on working.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector as Source

from podlife.controller.metrics import histogram
from podlife.podgc import Collector
from podlife.podgc.metrics import DELETED_TOTAL, ERRORS_TOTAL
from podlife.workqueue import Distribution


class GcMetrics(Source):
    """Register it with a registry: `GcMetrics(...).register(registry)`."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def register(self, registry: CollectorRegistry) -> None:
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        yield from self._actions()
        yield from self._index()
        if self._collector.settings.policy is not None:
            yield from self._policy()
        if self._collector.settings.guards is not None:
            yield from self._guards()

    def _actions(self) -> Iterator[Metric]:
        metrics = self._collector.metrics
        for name, help_, counts in (
            (DELETED_TOTAL, "Pods that were deleted.", metrics.deleted),
            (ERRORS_TOTAL, "Deletions that failed.", metrics.errors),
        ):
            family = CounterMetricFamily(name, help_, labels=("namespace", "reason"))
            for (namespace, reason), number in counts.items():
                family.add_metric((namespace, str(reason)), number)
            yield family
        checks = CounterMetricFamily(
            "podlife_gc_node_checks_total", "Looks at the server for a missing node.", labels=("result",)
        )
        for result, number in metrics.node_checks.items():
            checks.add_metric((result,), number)
        yield checks
        yield _histogram(
            "podlife_gc_reaction_seconds",
            "From the event that makes a pod collectable to its deletion on the wire.",
            metrics.reaction_seconds,
        )
        yield _histogram("podlife_gc_pass_seconds", "How long it took to decide.", metrics.pass_seconds)

    def _policy(self) -> Iterator[Metric]:
        metrics = self._collector.metrics
        for name, label, help_, counts in (
            ("deleted_by_rule", "rule", "Pods that were deleted.", metrics.deleted_by_rule),
            ("policy_reloads", "result", "Changes of the policy file.", metrics.policy_reloads),
        ):
            family = CounterMetricFamily(f"podlife_gc_{name}_total", help_, labels=(label,))
            for value, number in counts.items():
                family.add_metric((value,), number)
            yield family
        for name, help_, number in (
            ("policy_generation", "How many policies have been in force.", metrics.policy_generation),
            (
                "policy_refused",
                "Whether the policy file is refused as it stands; the one before is in force then.",
                metrics.is_policy_refused,
            ),
        ):
            yield GaugeMetricFamily(f"podlife_gc_{name}", help_, float(number))

    def _guards(self) -> Iterator[Metric]:
        metrics = self._collector.metrics
        observed = CounterMetricFamily(
            "podlife_gc_observed_total",
            "Pods that would have been deleted, if it did not only observe.",
            labels=("namespace", "reason"),
        )
        for (namespace, reason), number in metrics.observed.items():
            observed.add_metric((namespace, str(reason)), number)
        yield observed
        holding = GaugeMetricFamily(
            "podlife_gc_guard_holding", "Guards that hold pods back.", labels=("guard", "namespace")
        )
        for guard, namespace in sorted(metrics.held_back):
            holding.add_metric((str(guard), namespace), 1.0)
        yield holding
        yield CounterMetricFamily(
            "podlife_gc_mass_stops_total", "Mass failures that were not carried out.", metrics.mass_stops
        )

    def _index(self) -> Iterator[Metric]:
        index = self._collector.index
        for name, help_, number in (
            ("pods", "Pods in the index.", len(index)),
            ("nodes", "Nodes in the index.", index.node_count),
            ("terminated_pods", "Pods that count against the threshold.", index.terminated_count),
            ("terminating_pods", "Pods that are being deleted.", index.terminating_count),
            ("missing_nodes", "Nodes that pods are on and that are not there.", len(index.missing)),
            ("held_pods", "Pods that only their finalizers still hold.", len(index.settled)),
            (
                "live",
                "Whether the caches are synced and live; nothing is deleted while not.",
                self._collector.is_fit,
            ),
        ):
            yield GaugeMetricFamily(f"podlife_gc_{name}", help_, float(number))


def _histogram(name: str, help_: str, distribution: Distribution) -> Metric:
    family = HistogramMetricFamily(name, help_, labels=[])
    histogram(family, [], distribution)
    return family
