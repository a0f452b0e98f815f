"""Prometheus exporter of a collector. Values are read when they are scraped.

Two counters have the names of kube-controller-manager, so that existing dashboards and alerts keep working. Register it
with `registry.register(GcMetrics(collector))`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector as Source

from podlife.controller.metrics import histogram
from podlife.podgc.archive import ArchiveStep
from podlife.podgc.collector import Collector
from podlife.podgc.finalizers.controller import FinalizerController
from podlife.podgc.metrics import DELETED_TOTAL, ERRORS_TOTAL
from podlife.workqueue import Distribution

K = TypeVar("K")

_BY_REASON = ("namespace", "reason")


class GcMetrics(Source):
    def __init__(
        self,
        collector: Collector,
        archive: ArchiveStep | None = None,
        finalizers: FinalizerController | None = None,
    ) -> None:
        self._collector = collector
        self._archive = archive
        self._finalizers = finalizers

    def collect(self) -> Iterator[Metric]:
        yield from self._actions()
        yield from self._index()
        if self._collector.settings.policy is not None:
            yield from self._policy()
        if self._collector.settings.guards is not None:
            yield from self._guards()
        if self._archive is not None:
            yield from _archive(self._archive)
        if self._finalizers is not None:
            help_ = "Finalizers removed from pods whose node no longer exists."
            name, counts = "podlife_gc_removed_finalizers_total", self._finalizers.taken
            yield _counter(name, help_, ("finalizer",), counts)

    def _actions(self) -> Iterator[Metric]:
        metrics = self._collector.metrics
        yield _counter(DELETED_TOTAL, "Deleted pods.", _BY_REASON, metrics.deleted)
        yield _counter(ERRORS_TOTAL, "Failed deletions.", _BY_REASON, metrics.errors)
        yield _counter(
            "podlife_gc_node_checks_total",
            "Server lookups of missing nodes.",
            ("result",),
            metrics.node_checks,
        )
        help_ = "Time from the event that makes a pod collectable to the delete request."
        yield _histogram("podlife_gc_reaction_seconds", help_, metrics.reaction_seconds)
        yield _histogram("podlife_gc_pass_seconds", "Duration of planning.", metrics.pass_seconds)

    def _policy(self) -> Iterator[Metric]:
        metrics = self._collector.metrics
        yield _counter(
            "podlife_gc_deleted_by_rule_total", "Deleted pods by rule.", ("rule",), metrics.deleted_by_rule
        )
        yield _counter(
            "podlife_gc_policy_reloads_total", "Policy file changes.", ("result",), metrics.policy_reloads
        )
        refused = "Whether the policy file is invalid and the previous policy stays in force."
        yield from _gauges(
            ("policy_generation", "Number of policies put in force so far.", metrics.policy_generation),
            ("policy_refused", refused, metrics.is_policy_refused),
        )

    def _guards(self) -> Iterator[Metric]:
        metrics = self._collector.metrics
        help_ = "Pods that observe-only kept from being deleted."
        yield _counter("podlife_gc_observed_total", help_, _BY_REASON, metrics.observed)
        holding = GaugeMetricFamily(
            "podlife_gc_guard_holding", "Guards that hold pods back.", labels=("guard", "namespace")
        )
        for guard, namespace in sorted(metrics.held_back):
            holding.add_metric((str(guard), namespace), 1.0)
        yield holding
        help_ = "Mass failures that the share guards stopped."
        yield CounterMetricFamily("podlife_gc_mass_stops_total", help_, metrics.mass_stops)

    def _index(self) -> Iterable[Metric]:
        index = self._collector.index
        return _gauges(
            ("pods", "Pods in the index.", len(index)),
            ("nodes", "Nodes in the index.", index.node_count),
            ("terminated_pods", "Pods that count for the threshold.", index.terminated_count),
            ("terminating_pods", "Pods that are being deleted.", index.terminating_count),
            ("missing_nodes", "Nodes that pods name and that do not exist.", len(index.missing)),
            ("held_pods", "Deleted pods that finalizers hold.", len(index.settled)),
            (
                "live",
                "Whether the caches are synced and live; nothing is deleted otherwise.",
                self._collector.is_fit,
            ),
        )


def _archive(step: ArchiveStep) -> Iterator[Metric]:
    counts = step.counts
    for name, help_, number in (
        ("entries", "Pods archived before their deletion.", counts.entries),
        ("refusals", "Attempts to archive a pod that failed, so that it stays.", counts.refusals),
        ("missing_logs", "Logs that could not be read; their entries have the reason.", counts.missing_logs),
    ):
        yield CounterMetricFamily(f"podlife_gc_archive_{name}", help_, float(number))


def _counter(name: str, help_: str, labels: Sequence[str], counts: Mapping[K, int]) -> Metric:
    family = CounterMetricFamily(name, help_, labels=labels)
    for key, number in counts.items():
        values = key if isinstance(key, tuple) else (key,)
        family.add_metric([str(value) for value in values], number)
    return family


def _gauges(*gauges: tuple[str, str, float]) -> Iterator[Metric]:
    for name, help_, number in gauges:
        yield GaugeMetricFamily(f"podlife_gc_{name}", help_, float(number))


def _histogram(name: str, help_: str, distribution: Distribution) -> Metric:
    family = HistogramMetricFamily(name, help_, labels=[])
    histogram(family, [], distribution)
    return family
