"""Metrics of probes (PR-21): plain numbers that an exporter reads.

The numbers of a prober are dropped when it ends, so that they grow with the pods of the node and not with its age.
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
# Prometheus' own defaults, as upstream.
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
        # How long a failure took says how long its time limit is.
        if result is not ProbeResult.FAILURE:
            if labels not in self.seconds:
                self.seconds[labels] = Distribution(_BOUNDS)
            self.seconds[labels].observe(seconds)

    def forget(self, labels: ProbeLabels) -> None:
        for result in RESULTS.values():
            self.total.pop((labels, result), None)
        self.seconds.pop(labels, None)
