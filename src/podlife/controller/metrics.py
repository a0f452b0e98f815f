"""Prometheus metrics of queues, controllers, elections, informers and clients, under their upstream names.

Components keep their own counters, which are read at each scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from podlife.client import Limiter
from podlife.controller.control_plane import ControlPlane, Followed
from podlife.controller.leader_election import LeaderElector
from podlife.controller.reconcile import Controller
from podlife.events import Recorder
from podlife.workqueue import Distribution, Queue

K = TypeVar("K", bound=Hashable)


class _Families(Collector):
    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()


def export_queues(registry: CollectorRegistry, *queues: Queue[K]) -> None:
    """client-go's `workqueue_*` metrics, by the name of the queue."""
    registry.register(_Families(lambda: _queue_families(queues)))


def export_controllers(registry: CollectorRegistry, *controllers: Controller[K]) -> None:
    registry.register(_Families(lambda: _controller_families(controllers)))


def export_election(registry: CollectorRegistry, name: str, elector: LeaderElector) -> None:
    """client-go's `leader_election_master_status`."""
    registry.register(_Families(lambda: _election_families(name, elector)))


def export_informers(registry: CollectorRegistry, plane: ControlPlane) -> None:
    """The caches of a control plane, by resource and view."""
    registry.register(_Families(lambda: _informer_families(plane)))


def export_client(registry: CollectorRegistry, limiter: Limiter, *recorders: Recorder) -> None:
    """Client requests and event counters."""
    registry.register(_Families(lambda: _client_families(limiter, recorders)))


def histogram(family: HistogramMetricFamily, labels: list[str], distribution: Distribution) -> None:
    buckets = [
        ("+Inf" if bound == float("inf") else f"{bound:g}", float(count))
        for bound, count in distribution.cumulative()
    ]
    family.add_metric(labels, buckets=buckets, sum_value=distribution.sum)


def _queue_families(queues: tuple[Queue[K], ...]) -> Iterable[Metric]:
    gauges: tuple[tuple[str, str, Callable[[Queue[K]], float]], ...] = (
        ("workqueue_depth", "Keys that need processing.", lambda queue: queue.depth),
        (
            "workqueue_unfinished_work_seconds",
            "Total processing time so far of all keys in progress.",
            lambda queue: queue.unfinished_seconds(),
        ),
        (
            "workqueue_longest_running_processor_seconds",
            "Processing time so far of the longest-running key.",
            lambda queue: queue.longest_running_seconds(),
        ),
    )
    for name, help_, read in gauges:
        gauge = GaugeMetricFamily(name, help_, labels=["name"])
        for queue in queues:
            gauge.add_metric([queue.name], read(queue))
        yield gauge
    adds = CounterMetricFamily("workqueue_adds", "Keys queued.", labels=["name"])
    retries = CounterMetricFamily("workqueue_retries", "Keys queued with a delay.", labels=["name"])
    waited = HistogramMetricFamily(
        "workqueue_queue_duration_seconds", "Time from queueing a key to its processing.", labels=["name"]
    )
    worked = HistogramMetricFamily(
        "workqueue_work_duration_seconds", "Processing time of keys.", labels=["name"]
    )
    for queue in queues:
        adds.add_metric([queue.name], queue.metrics.adds)
        retries.add_metric([queue.name], queue.metrics.retries)
        histogram(waited, [queue.name], queue.metrics.queue_seconds)
        histogram(worked, [queue.name], queue.metrics.work_seconds)
    yield from (adds, retries, waited, worked)


def _controller_families(controllers: tuple[Controller[K], ...]) -> Iterable[Metric]:
    results = CounterMetricFamily(
        "podlife_controller_reconcile",
        "Reconciled keys by result.",
        labels=["controller", "result"],
    )
    seconds = HistogramMetricFamily(
        "podlife_controller_reconcile_seconds", "Duration of a reconcile.", labels=["controller"]
    )
    active = GaugeMetricFamily("podlife_controller_active_workers", "Busy workers.", labels=["controller"])
    for controller in controllers:
        for result, count in sorted(controller.metrics.results.items()):
            results.add_metric([controller.name, result], count)
        histogram(seconds, [controller.name], controller.metrics.seconds)
        active.add_metric([controller.name], controller.metrics.active_workers)
    yield from (results, seconds, active)


def _election_families(name: str, elector: LeaderElector) -> Iterable[Metric]:
    status = GaugeMetricFamily("leader_election_master_status", "1 on the leader, else 0.", labels=["name"])
    status.add_metric([name], float(elector.is_leader))
    yield status


def _informer_families(plane: ControlPlane) -> Iterable[Metric]:
    labels = ["resource", "view"]
    objects = GaugeMetricFamily("podlife_informer_objects", "Objects in the cache.", labels=labels)
    live = GaugeMetricFamily(
        "podlife_informer_live", "Whether the cache currently follows the server.", labels=labels
    )
    counters = [
        CounterMetricFamily("podlife_informer_events", "Notifications delivered.", labels=labels),
        CounterMetricFamily("podlife_informer_lists", "Lists started.", labels=labels),
        CounterMetricFamily("podlife_informer_interruptions", "Interruptions of the watch.", labels=labels),
        CounterMetricFamily("podlife_informer_misfits", "Objects that could not be decoded.", labels=labels),
    ]
    for followed, informer in plane.all_informers.items():
        values = [str(followed.ref), _view_name(followed)]
        objects.add_metric(values, len(informer.cache))
        live.add_metric(values, float(informer.has_synced and informer.is_live))
        stats = informer.stats
        counts = (stats.events, stats.lists, stats.interruptions, stats.misfits)
        for counter, count in zip(counters, counts, strict=True):
            counter.add_metric(values, count)
    yield from (objects, live, *counters)


def _view_name(followed: Followed) -> str:
    """With the module of the view, because names repeat."""
    selection = "".join(f" {part}" for part in (followed.namespace, followed.label_selector) if part)
    return f"{followed.view.__module__}.{followed.view.__qualname__}{selection}"


def _client_families(limiter: Limiter, recorders: tuple[Recorder, ...]) -> Iterable[Metric]:
    state = limiter.state
    for name, help_, number in (
        ("limit", "Maximum number of concurrent requests.", state.limit),
        ("in_flight", "Requests in flight.", state.in_flight),
        ("waiting", "Requests waiting for admission.", limiter.waiting),
    ):
        yield GaugeMetricFamily(f"podlife_client_{name}", help_, float(number))
    events = CounterMetricFamily("podlife_events_total", "Events by result.", labels=("result",))
    for result in ("sent", "dropped", "filtered", "failed"):
        events.add_metric((result,), sum(getattr(recorder.counts, result) for recorder in recorders))
    yield events
