"""The numbers of probes for Prometheus, with a kubelet's names and labels (PR-21)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from podlife.controller.metrics import histogram
from podlife.kubelet.prober.metrics import (
    PROBE_SECONDS,
    PROBE_TOTAL,
    ProbeLabels,
    ProbeMetrics,
)

__all__ = ["probe_families"]


def probe_families(metrics: ProbeMetrics) -> Iterator[Metric]:
    """As they are now."""
    fields = list(ProbeLabels._fields)
    total = CounterMetricFamily(PROBE_TOTAL, "Probes of a container by result.", labels=[*fields, "result"])
    for (labels, result), count in list(metrics.total.items()):
        total.add_metric([*labels, result], count)
    yield total
    seconds = HistogramMetricFamily(
        PROBE_SECONDS, "How long probes of a container took that did not fail.", labels=fields[:-1]
    )
    # Pods of one name may follow each other; the newest has the name.
    newest = {labels[:-1]: each for labels, each in list(metrics.seconds.items())}
    for without_uid, distribution in newest.items():
        histogram(seconds, list(without_uid), distribution)
    yield seconds
