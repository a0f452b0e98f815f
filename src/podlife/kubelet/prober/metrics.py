"""Metrics of probes (PR-21), as plain numbers for an exporter.

The numbers of a prober are dropped with it, so their size is bounded by the pods of the node.
"""

from __future__ import annotations

from typing import NamedTuple

from podlife.kubelet.prober.state import ProbeResult
from podlife.workqueue import Distribution

PROBE_TOTAL = "prober_probe_total"
PROBE_SECONDS = "prober_probe_duration_seconds"

RESULTS = {
    ProbeResult.SUCCESS: "successful",
    ProbeResult.FAILURE: "failed",
    ProbeResult.UNKNOWN: "unknown",
}
# The default buckets of Prometheus, as upstream.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ProbeLabels(NamedTuple):
    """`probe_total` has all of them and `result`; `probe_duration_seconds` has no `pod_uid`."""

    probe_type: str
    container: str
    pod: str
    namespace: str
    pod_uid: str


class ProbeMetrics:
    def __init__(self) -> None:
        # By prober and `result`.
        self.total: dict[tuple[ProbeLabels, str], int] = {}
        self.seconds: dict[ProbeLabels, Distribution] = {}

    def count(self, labels: ProbeLabels, result: ProbeResult, seconds: float) -> None:
        key = (labels, RESULTS[result])
        self.total[key] = self.total.get(key, 0) + 1
        # The duration of a failure mostly reflects the timeout.
        if result is not ProbeResult.FAILURE:
            if labels not in self.seconds:
                self.seconds[labels] = Distribution(_BOUNDS)
            self.seconds[labels].observe(seconds)

    def forget(self, labels: ProbeLabels) -> None:
        for result in RESULTS.values():
            self.total.pop((labels, result), None)
        self.seconds.pop(labels, None)
