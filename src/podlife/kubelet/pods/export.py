"""The numbers of a node's pods for Prometheus, with a kubelet's names."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from podlife.controller.metrics import histogram
from podlife.kubelet.lifecycle.objects import is_static
from podlife.kubelet.pods.core import PodCore
from podlife.kubelet.pods.known_pods import KnownPods
from podlife.kubelet.podworkers import CONTAINERS_PER_POD, WORKER_SECONDS

__all__ = ["pod_families"]


def pod_families(core: PodCore, known: KnownPods) -> Iterator[Metric]:
    """As they are now."""
    running, containers = core.changes.counts()
    yield GaugeMetricFamily("kubelet_running_pods", "Pods that have a running sandbox.", value=running)
    states = GaugeMetricFamily(
        "kubelet_running_containers", "Containers by their state.", labels=["container_state"]
    )
    for state, count in sorted(containers.items()):
        states.add_metric([state], count)
    yield states
    desired = GaugeMetricFamily("kubelet_desired_pods", "Pods that the node should have.", labels=["static"])
    static = sum(is_static(pod) for pod in known)
    desired.add_metric([""], len(known) - static)
    desired.add_metric(["true"], static)
    yield desired
    yield GaugeMetricFamily("kubelet_working_pods", "Pods that the workers know.", value=len(core.workers))
    metrics = core.workers.metrics
    seconds = HistogramMetricFamily(
        WORKER_SECONDS, "From a change to the end of the step that saw it.", labels=["operation_type"]
    )
    for operation, distribution in metrics.worker_seconds.items():
        histogram(seconds, [operation], distribution)
    yield seconds
    per_pod = HistogramMetricFamily(CONTAINERS_PER_POD, "Containers of a pod when it is first let run.")
    histogram(per_pod, [], metrics.containers_per_pod)
    yield per_pod
    yield CounterMetricFamily("podlife_pod_step_failures", "Steps that failed.", value=metrics.failures)
