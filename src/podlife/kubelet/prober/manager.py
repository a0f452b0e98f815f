"""All probers of a node (PR-16 to PR-20): one per container and type, from the first sync of a pod until it is removed.

Constructing one starts nothing; an idle prober is a timer, and a probe in flight is a task that `remove` and `close`
cancel. Unlike upstream, a pod that is added again gets every prober that it lacks (PR-20), and the probers of sidecars
stop with the others (PR-19).
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

_Name = tuple[str, ProbeType]


class PodStatuses(Protocol):
    """The status manager: what is known of a pod, for its addresses and the IDs of its containers."""

    def status(self, uid: str) -> dict[str, Any] | None: ...


class ProberManager:
    """`on_change` is called in the middle of a look: it takes note and returns. `random` spreads first looks."""

    def __init__(
        self,
        runtime: Runtime,
        statuses: PodStatuses,
        clock: Clock,
        recorder: EventRecorder,
        on_change: ResultChanged,
        agent_started: datetime,
        *,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.metrics = ProbeMetrics()
        self._results = ProbeResults(on_change)
        self._context = ProberContext(
            runtime, statuses.status, self._results, self.metrics, clock, recorder, agent_started
        )
        self._random = random
        self._workers: dict[str, dict[_Name, ProberWorker]] = {}
        self._ending: set[str] = set()

    def result(self, type_: ProbeType, container_id: str) -> ProbeResult | None:
        return self._results.get(type_, container_id)

    def set_result(self, type_: ProbeType, container_id: str, uid: str, result: ProbeResult) -> None:
        self._results.set(type_, container_id, uid, result)

    def add(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        workers = self._workers.get(uid, {})
        for worker in workers.values():
            worker.pod = pod
        stopped = set(probers_that_stop(pod)) if uid in self._ending else set()
        for container, type_ in probers_of(pod):
            name = (container["name"], type_)
            if name not in workers and name not in stopped:
                self._start(ProberWorker(self._context, pod, container, type_, self._ended))

    def status_changed(self, uid: str) -> None:
        """The pod's status was set: a readiness that is not given yet is asked for now, not after its period."""
        for (_, type_), worker in list(self._workers.get(uid, {}).items()):
            if type_ is ProbeType.READINESS and not worker.is_content:
                worker.look_now()

    def stop_for_termination(self, pod: Pod) -> None:
        uid = pod["metadata"]["uid"]
        self._ending.add(uid)
        workers = self._workers.get(uid, {})
        for worker in workers.values():
            worker.pod = pod
        for name in probers_that_stop(pod):
            if name in workers:
                self._ended(workers[name])

    def remove(self, uid: str) -> None:
        self._ending.discard(uid)
        for worker in list(self._workers.get(uid, {}).values()):
            self._ended(worker)
        self._results.drop_pod(uid)

    def keep_only(self, uids: Collection[str]) -> None:
        for uid in {*self._workers, *self._ending, *self._results.pods()}.difference(uids):
            self.remove(uid)

    async def close(self) -> None:
        """Stop all of them, and wait for what is under way to be broken off."""
        workers = [worker for each in self._workers.values() for worker in each.values()]
        tasks = [worker.task for worker in workers if worker.task is not None]
        self.keep_only(())
        await cancel_and_wait(*tasks)

    def _start(self, worker: ProberWorker) -> None:
        self._workers.setdefault(worker.uid, {})[worker.container["name"], worker.type] = worker
        age = (self._context.clock.now() - self._context.agent_started).total_seconds()
        worker.start(first_delay_seconds(worker.period_seconds, age, self._random()))

    def _ended(self, worker: ProberWorker) -> None:
        worker.stop()
        workers = self._workers.get(worker.uid, {})
        workers.pop((worker.container["name"], worker.type), None)
        if not workers:
            self._workers.pop(worker.uid, None)


def probers_of(pod: Pod) -> Iterator[tuple[Container, ProbeType]]:
    """One per container and type. Plain init containers have none."""
    for container in (*containers_of(pod), *filter(is_sidecar, init_containers_of(pod))):
        for type_ in ProbeType:
            if container.get(type_.value):
                yield container, type_


def probers_that_stop(pod: Pod) -> Iterator[tuple[str, ProbeType]]:
    """When the pod is to end: a container that ends as asked must not be found ill for it. Upstream lets those of
    sidecars run on, to no effect but misleading events (PR-19); here they stop as well."""
    for container, type_ in probers_of(pod):
        if type_ is not ProbeType.READINESS:
            yield container["name"], type_


def first_delay_seconds(period_seconds: float, agent_age_seconds: float, random: float) -> float:
    """A kubelet that was just started has all its probes to begin at once: each waits a part of its period (PR-18).
    `random` is between 0 and 1."""
    return random * period_seconds if period_seconds > agent_age_seconds else 0.0
