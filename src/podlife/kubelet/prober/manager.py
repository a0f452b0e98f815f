"""All probers of a node (PR-16 to PR-20): one per container and type, from a pod's first sync until its removal.

The constructor starts nothing; an idle prober is a timer, and a probe in flight is a task that `remove` and `close`
cancel. Unlike upstream, a pod that is added again gets every prober it lacks (PR-20), and the probers of sidecars stop
with the others (PR-19).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from typing import Any, Protocol

from podlife.aio import cancel_and_wait
from podlife.clock import Clock
from podlife.kubelet.pod_events import EventRecorder
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of, is_sidecar
from podlife.kubelet.prober.metrics import ProbeMetrics
from podlife.kubelet.prober.results import ProbeResults, ResultChanged
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.prober.worker import ProberContext, ProberWorker
from podlife.kubelet.runtime import Runtime

_Key = tuple[str, ProbeType]


class PodStatuses(Protocol):
    """The status manager, source of pod addresses and container IDs."""

    def status(self, uid: str) -> dict[str, Any] | None: ...


class ProberManager:
    """`on_change` is called during a tick and must return at once. `random` spreads first ticks."""

    def __init__(
        self,
        runtime: Runtime,
        statuses: PodStatuses,
        clock: Clock,
        recorder: EventRecorder,
        on_change: ResultChanged,
        kubelet_started: datetime,
        *,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.metrics = ProbeMetrics()
        self._results = ProbeResults(on_change)
        self._context = ProberContext(
            runtime, statuses.status, self._results, self.metrics, clock, recorder, kubelet_started
        )
        self._random = random
        self._workers: dict[str, dict[_Key, ProberWorker]] = {}
        self._terminating: set[str] = set()

    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return self._results.get(type_, container_id)

    def set_result(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None:
        self._results.set(type_, container_id, uid, result)

    def add(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        workers = self._workers.get(uid, {})
        for worker in workers.values():
            worker.pod = pod
        stopped = set(probers_that_stop(pod)) if uid in self._terminating else set()
        for container, type_ in probers_of(pod):
            name = (container["name"], type_)
            if name not in workers and name not in stopped:
                self._start(ProberWorker(self._context, pod, container, type_, self._stop))

    def status_changed(self, uid: str) -> None:
        """The pod's status was set: run a readiness probe that has not succeeded yet now instead of after its
        period."""
        for (_, type_), worker in list(self._workers.get(uid, {}).items()):
            if type_ is ProbeType.READINESS and not worker.is_successful:
                worker.tick_now()

    def stop_for_termination(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        self._terminating.add(uid)
        workers = self._workers.get(uid, {})
        for worker in workers.values():
            worker.pod = pod
        for name in probers_that_stop(pod):
            if name in workers:
                self._stop(workers[name])

    def remove(self, uid: str) -> None:
        self._terminating.discard(uid)
        for worker in list(self._workers.get(uid, {}).values()):
            self._stop(worker)
        self._results.drop_pod(uid)

    def keep_only(self, uids: Collection[str]) -> None:
        for uid in {*self._workers, *self._terminating, *self._results.pods()}.difference(uids):
            self.remove(uid)

    async def close(self) -> None:
        """Stop all probers, and wait until probes in flight are cancelled."""
        workers = [worker for each in self._workers.values() for worker in each.values()]
        tasks = [worker.task for worker in workers if worker.task is not None]
        self.keep_only(())
        await cancel_and_wait(*tasks)

    def _start(self, worker: ProberWorker) -> None:
        self._workers.setdefault(worker.uid, {})[worker.container["name"], worker.type] = worker
        age = (self._context.clock.now() - self._context.kubelet_started).total_seconds()
        worker.start(first_delay_seconds(worker.period_seconds, age, self._random()))

    def _stop(self, worker: ProberWorker) -> None:
        worker.stop()
        workers = self._workers.get(worker.uid, {})
        workers.pop((worker.container["name"], worker.type), None)
        if not workers:
            self._workers.pop(worker.uid, None)


def probers_of(pod: Pod) -> Iterator[tuple[Container, ProbeType]]:
    """One per container and type. Init containers other than sidecars have none."""
    for container in (*containers_of(pod), *filter(is_sidecar, init_containers_of(pod))):
        for type_ in ProbeType:
            if container.get(type_.value):
                yield container, type_


def probers_that_stop(pod: Pod) -> Iterator[tuple[str, ProbeType]]:
    """Probers to stop when termination begins: a container that stops on request must not be reported unhealthy.
    Upstream keeps those of sidecars, which only causes misleading events (PR-19)."""
    for container, type_ in probers_of(pod):
        if type_ is not ProbeType.READINESS:
            yield container["name"], type_


def first_delay_seconds(period_seconds: float, kubelet_age_seconds: float, random: float) -> float:
    """A random part of the period if the kubelet has just started, so that its probes do not all run at once (PR-18).
    `random` is between 0 and 1."""
    return random * period_seconds if period_seconds > kubelet_age_seconds else 0.0
