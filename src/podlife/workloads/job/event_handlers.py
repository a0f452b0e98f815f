"""Event handlers of the Job controller for Jobs and tracked pods.

Many pods finish at the same time, so their Jobs are enqueued at most once a second; changes of a Job are enqueued
immediately. A pod with the tracking finalizer whose Job no longer counts it goes to a separate queue, so that the
finalizer does not block its deletion.
"""

from __future__ import annotations

from collections.abc import Callable

from podlife.api.views import controller_of
from podlife.client import JOBS
from podlife.informer import CacheReader
from podlife.informer.indexes import Key
from podlife.workloads.job.pods import is_tracked
from podlife.workloads.job.views import Job, has_finished
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import DelayingQueue, Queue

BATCH_SECONDS = 1.0


class Batched:
    """Adds keys to the queue after a second, so that events in between are handled together."""

    def __init__(self, queue: DelayingQueue[Key]) -> None:
        self._queue = queue

    def add(self, key: Key) -> None:
        self._queue.add_after(key, BATCH_SECONDS)


class JobEventHandler:
    """`on_finish` is called for each finished Job, `on_gone` for each deleted one."""

    def __init__(
        self, queue: DelayingQueue[Key], on_finish: Callable[[Job], None], on_gone: Callable[[Job], None]
    ) -> None:
        self._queue = queue
        self._on_finish = on_finish
        self._on_gone = on_gone

    def on_add(self, job: Job) -> None:
        self._queue.add(key_of(job))

    def on_update(self, old: Job, new: Job) -> None:
        is_another = old.metadata.uid != new.metadata.uid
        if is_another:
            self._on_gone(old)
        if has_finished(new):
            self._on_finish(new)
        if is_another or old.metadata.generation != new.metadata.generation:
            self._queue.add(key_of(new))
        else:
            # Most likely the status that was written here.
            self._queue.add_after(key_of(new), BATCH_SECONDS)

    def on_delete(self, job: Job) -> None:
        self._on_gone(job)
        self._queue.add(key_of(job))


class OrphanPodHandler:
    """Handles tracked pods without an owner, or terminating ones whose Job is gone or has finished."""

    def __init__(self, jobs: CacheReader[Job], queue: Queue[Key]) -> None:
        self._jobs = jobs
        self._queue = queue

    def on_add(self, pod: WorkloadPod) -> None:
        if is_tracked(pod) and self._is_stranded(pod):
            self._queue.add(key_of(pod))

    def on_update(self, old: WorkloadPod, new: WorkloadPod) -> None:
        self.on_add(new)

    def on_delete(self, pod: WorkloadPod) -> None:
        """Nothing holds it any more."""

    def _is_stranded(self, pod: WorkloadPod) -> bool:
        reference = controller_of(pod.metadata)
        if reference is None:
            return True
        if reference.kind != JOBS.kind or pod.metadata.deletion_timestamp is None:
            return False
        job = self._jobs.get(pod.metadata.namespace, reference.name)
        return job is None or job.metadata.uid != reference.uid or has_finished(job)
