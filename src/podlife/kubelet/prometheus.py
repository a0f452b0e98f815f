"""Prometheus metrics of a node's pods, under the kubelet's names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from podlife.controller.metrics import histogram
from podlife.kubelet.core import KubeletCore
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_fields import is_static
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.podworkers import KnownPod, Stage
from podlife.kubelet.prober.metrics import PROBE_SECONDS, PROBE_TOTAL, ProbeLabels, ProbeMetrics

# Values of the labels `config` and `static` that are always exported, as upstream.
_WORKING = (
    ("desired", ""),
    ("desired", "true"),
    ("orphan", ""),
    ("orphan", "true"),
    ("runtime_only", "unknown"),
)


def pod_families(core: KubeletCore, pods: PodManager) -> Iterator[Metric]:
    """Current values."""
    yield from _running(core)
    yield _by_static("kubelet_desired_pods", "Pods that the node should run.", list(pods))
    active = core.cleanups.active_pods()
    yield _by_static("kubelet_active_pods", "Admitted pods that have not terminated.", active)
    yield GaugeMetricFamily("kubelet_mirror_pods", "Mirror pods known.", value=len(pods.mirrors()))
    yield _working(core.workers.known_pods(pods).values())
    counts = core.cleanups.counts
    yield CounterMetricFamily(
        "kubelet_orphaned_runtime_pods",
        "Pods killed because only the container runtime knew them.",
        value=counts.orphaned_runtime_pods,
    )
    restarted = CounterMetricFamily(
        "kubelet_restarted_pods", "Pods started again under the same UID.", labels=["static"]
    )
    for label, count in counts.restarted_pods.items():
        restarted.add_metric([label], count)
    yield restarted
    yield from _workers(core)


def _running(core: KubeletCore) -> Iterator[Metric]:
    running, containers = core.pleg.counts()
    yield GaugeMetricFamily("kubelet_running_pods", "Pods that have a running sandbox.", value=running)
    states = GaugeMetricFamily(
        "kubelet_running_containers", "Containers by their state.", labels=["container_state"]
    )
    for state, count in sorted(containers.items()):
        states.add_metric([state], count)
    yield states


def _by_static(name: str, documentation: str, pods: Collection[NodePod]) -> Metric:
    family = GaugeMetricFamily(name, documentation, labels=["static"])
    static = sum(is_static(pod) for pod in pods)
    family.add_metric([""], len(pods) - static)
    family.add_metric(["true"], static)
    return family


def _working(pods: Collection[KnownPod]) -> Metric:
    counted = Counter((each.stage.value, *_config(each)) for each in pods)
    shown = {(stage.value, *labels): 0 for stage in Stage for labels in _WORKING}
    family = GaugeMetricFamily(
        "kubelet_working_pods", "Pods known to the pod workers.", labels=["lifecycle", "config", "static"]
    )
    for labels, count in {**shown, **counted}.items():
        family.add_metric(labels, count)
    return family


def _config(pod: KnownPod) -> tuple[str, str]:
    """The labels `config` and `static`."""
    if not pod.has_config:
        return ("runtime_only" if pod.is_orphan else "desired"), "unknown"
    return ("orphan" if pod.is_orphan else "desired"), ("true" if pod.is_static else "")


def _workers(core: KubeletCore) -> Iterator[Metric]:
    metrics = core.workers.metrics
    seconds = HistogramMetricFamily(
        "kubelet_pod_worker_duration_seconds",
        "Time from a change to the end of the step that handled it.",
        labels=["operation_type"],
    )
    for operation, distribution in metrics.worker_seconds.items():
        histogram(seconds, [operation], distribution)
    yield seconds
    per_pod = HistogramMetricFamily(
        "kubelet_containers_per_pod_count", "Containers per pod, observed when the pod starts."
    )
    histogram(per_pod, [], metrics.containers_per_pod)
    yield per_pod
    yield CounterMetricFamily("podlife_pod_step_failures", "Failed steps of pods.", value=metrics.failures)


def probe_families(metrics: ProbeMetrics) -> Iterator[Metric]:
    """Current values."""
    fields = list(ProbeLabels._fields)
    total = CounterMetricFamily(PROBE_TOTAL, "Probes of a container by result.", labels=[*fields, "result"])
    for (labels, result), count in list(metrics.total.items()):
        total.add_metric([*labels, result], count)
    yield total
    seconds = HistogramMetricFamily(
        PROBE_SECONDS, "Duration of probes that did not fail.", labels=fields[:-1]
    )
    # Without the UID, pods of the same name share labels; the newest wins.
    newest = {labels[:-1]: each for labels, each in list(metrics.seconds.items())}
    for without_uid, distribution in newest.items():
        histogram(seconds, list(without_uid), distribution)
    yield seconds
