"""Job controller: creates pods until enough have completed.

A sync decides from a state that is not older than the controller's own writes (`OwnWrites`, expectations). Nothing is
decided while the caches are stale. `sync` does the work; pods that no Job counts are left to `orphan_pods`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from podlife.api.selectors import LabelSelector
from podlife.api.views import MetadataOnly, controller_of
from podlife.client import JOBS, PODS, ListOptions
from podlife.controller import Again, Controller, ControlPlane, OwnWrites
from podlife.errors import NotFoundError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    POD_INDEXERS,
    ClaimSettings,
    ControllerRefManager,
    PodControl,
    UidTrackedExpectations,
    UncertainCreates,
    owner_of,
    pods_of_owner,
    recheck_owner,
)
from podlife.workloads.job.orphan_pods import OrphanPodHandler, OrphanPodRelease
from podlife.workloads.job.pod_control import JobPodControl
from podlife.workloads.job.pods import TRACKING_FINALIZER, is_tracked
from podlife.workloads.job.sync import BATCH_SECONDS, JobSync
from podlife.workloads.job.views import INDEXERS, Job, has_finished, is_managed_elsewhere
from podlife.workloads.pod_event_handler import PodEventHandler, key_of, note_pods
from podlife.workloads.status import CATCH_UP_SECONDS
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import DelayingQueue, ExponentialLimiter, RateLimitedQueue

# Backoff of failed syncs.
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 1.0, 60.0


class JobController:
    name = "job-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 5) -> None:
        self._client = plane.client
        self._recorder = plane.recorder(self.name)
        self._jobs = plane.informer(JOBS, view=Job, indexers=INDEXERS)
        self._pods = plane.informer(PODS, view=WorkloadPod, indexers=POD_INDEXERS)
        self._writes = OwnWrites({JOBS: self._jobs, PODS: self._pods})
        self._expectations = UidTrackedExpectations()
        self._control = PodControl(plane.client, self._recorder, on_write=note_pods(self._writes, JOBS))
        self._uncertain = UncertainCreates(plane.client, self._pods.cache, self._expectations)
        pod_control = JobPodControl(self._control, self._expectations, self._uncertain)
        self._sync = JobSync(plane.client, self._writes, pod_control, self._recorder, plane.clock)
        # UIDs of Jobs whose pods in the cache are current; see `_has_caught_up`.
        self._caught_up: dict[Key, str] = {}
        self.queue: RateLimitedQueue[Key] = _queue("job")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        # Its writes need not be observed.
        control = PodControl(plane.client, self._recorder)
        self._orphan_release = OrphanPodRelease(plane.client, control, self._jobs, self._pods)
        self.orphan_queue: RateLimitedQueue[Key] = _queue("job_orphan_pod")
        self._releasing = Controller(
            f"{self.name} stranded pods", self.orphan_queue, self._orphan_release.reconcile, workers=workers
        )
        self._jobs.add_handler(JobEventHandler(self.queue, self._on_finish, self._on_gone))
        self._pods.add_handler(
            PodEventHandler(JOBS, self._jobs.cache, Batched(self.queue), self._expectations)
        )
        self._pods.add_handler(OrphanPodHandler(self._jobs.cache, self.orphan_queue))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name=self.controller.name)
            group.create_task(self._releasing.run(), name=self._releasing.name)

    async def reconcile(self, key: Key) -> Again | None:
        job = self._jobs.cache.get(*key)
        if job is None or is_managed_elsewhere(job) or has_finished(job):
            self._forget(key)
            return None
        is_live = self._pods.is_live and self._jobs.is_live
        if not is_live or not self._writes.is_seen(key) or not await self._has_caught_up(job):
            return Again(CATCH_UP_SECONDS)
        if job.spec.completion_mode not in ("NonIndexed", "Indexed"):
            message = "Skipped Job sync because completion mode is unknown"
            about = owner_of(job, JOBS).object_reference()
            self._recorder.event(about, "Warning", "UnknownCompletionMode", message)
            return None
        await self._uncertain.settle(key, owner_of(job, JOBS))
        # Checked before pods are read: later events are in the cache then.
        is_settled = self._expectations.is_satisfied(key)
        try:
            return await self._sync.run(key, job, await self._claim(job), is_settled=is_settled)
        except NotFoundError:
            # Deleted meanwhile: its pods are released one by one.
            return None

    async def _claim(self, job: Job) -> list[WorkloadPod]:
        """Its pods, after adopting and releasing."""
        owner = owner_of(job, JOBS)
        references = ControllerRefManager[WorkloadPod](
            owner,
            _selector(job),
            self._control.patch_pod,
            can_adopt=recheck_owner(self._client, JOBS, owner),
            settings=ClaimSettings(finalizers=(TRACKING_FINALIZER,)),
        )
        pods = pods_of_owner(self._pods.cache, owner, with_orphans=True)
        return [_as_adopted(pod) for pod in await references.claim_all(pods)]

    async def _has_caught_up(self, job: Job) -> bool:
        """Whether the cache contains all writes of a previous leader for this Job.

        It may have counted pods that the cache still shows as tracked, or begun to count pods that the cache does not
        have yet: they would be counted twice."""
        uid = job.metadata.uid
        if self._caught_up.get(key_of(job)) == uid:
            return True
        if job.status:
            options = ListOptions(label_selector=_selector(job))
            listed = await self._client.list_all(
                PODS, job.metadata.namespace, options=options, view=MetadataOnly
            )
            tracked = {
                each.metadata.uid
                for each in listed.items
                if TRACKING_FINALIZER in each.metadata.finalizers
                and (owner := controller_of(each.metadata)) is not None
                and owner.uid == uid
            }
            if tracked != {pod.metadata.uid for pod in self._tracked_pods(job)}:
                return False
        self._caught_up[key_of(job)] = uid
        return True

    def _tracked_pods(self, job: Job) -> list[WorkloadPod]:
        return [pod for pod in pods_of_owner(self._pods.cache, owner_of(job, JOBS)) if is_tracked(pod)]

    def _on_finish(self, job: Job) -> None:
        # Pods are left only if another controller has finished the Job.
        for pod in self._tracked_pods(job):
            self.orphan_queue.add(key_of(pod))

    def _on_gone(self, job: Job) -> None:
        # A new Job of the same name may exist before this key is handled.
        self._expectations.forget(key_of(job))
        self._uncertain.forget(key_of(job))
        self._orphan_release.note_gone(job.metadata.uid)
        self._on_finish(job)

    def _forget(self, key: Key) -> None:
        self._expectations.forget(key)
        self._uncertain.forget(key)
        self._writes.forget(key)
        self._sync.forget(key)
        self._caught_up.pop(key, None)


def _selector(job: Job) -> LabelSelector:
    return job.valid_selector(f"Job {'/'.join(key_of(job))} has invalid label selector")


def _as_adopted(pod: WorkloadPod) -> WorkloadPod:
    """A pod that was just adopted has the finalizer on the server, but not in the cache."""
    if controller_of(pod.metadata) is not None or is_tracked(pod):
        return pod
    finalizers = (*pod.metadata.finalizers, TRACKING_FINALIZER)
    return replace(pod, metadata=replace(pod.metadata, finalizers=finalizers))


def _queue(name: str) -> RateLimitedQueue[Key]:
    return RateLimitedQueue(name, limiter=ExponentialLimiter[Key](_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS))


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
            # Most likely this controller's own status update.
            self._queue.add_after(key_of(new), BATCH_SECONDS)

    def on_delete(self, job: Job) -> None:
        self._on_gone(job)
        self._queue.add(key_of(job))
