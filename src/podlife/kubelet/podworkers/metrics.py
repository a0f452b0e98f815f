"""Metrics of the pod workers: plain numbers that an exporter reads."""

from __future__ import annotations

from podlife.workqueue import Distribution

WORKER_SECONDS = "kubelet_pod_worker_duration_seconds"
CONTAINERS_PER_POD = "kubelet_containers_per_pod_count"

# Prometheus' own defaults, which upstream uses for both, so that dashboards fit.
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OPERATIONS = ("create", "update", "sync", "kill", "terminated")


class WorkerMetrics:
    def __init__(self) -> None:
        # From the moment a change arrived at the kubelet to the end of the step that saw it, by operation (PW-190).
        self.worker_seconds = {operation: Distribution(_BOUNDS) for operation in _OPERATIONS}
        # Of every pod, when it is first let run (PW-73).
        self.containers_per_pod = Distribution(_BOUNDS)
        # Steps that failed, of those that were not cancelled.
        self.failures = 0
