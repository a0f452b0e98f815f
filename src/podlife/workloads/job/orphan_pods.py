"""Removes the tracking finalizer from pods that no Job will count: their Job is gone or has finished, or their owner
reference was removed. They could not be deleted otherwise.

A Job that is not in the cache is read from the server before it is considered gone. The patch carries UID and
resourceVersion: a pod that a Job has adopted meanwhile keeps its finalizer.
"""

from __future__ import annotations

from podlife.api.views import MetadataOnly, OwnerReference, controller_of
from podlife.client import JOBS, Client
from podlife.controller import Again
from podlife.errors import NotFoundError
from podlife.informer import CacheReader, Informer
from podlife.informer.indexes import Key
from podlife.lru import LruCache
from podlife.podcontrol import PodOperations
from podlife.workloads.job.pods import TRACKING_FINALIZER, is_tracked
from podlife.workloads.job.views import Job, has_finished, is_managed_elsewhere
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.status import CATCH_UP_SECONDS
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import Queue

_MOST_REMEMBERED = 1000


def finalizer_patch(pod: WorkloadPod, *, resource_version: str = "") -> dict[str, object]:
    """Removes the tracking finalizer from the pod with this UID, and only from `resource_version` if given."""
    metadata: dict[str, object] = {"uid": pod.metadata.uid}
    if resource_version:
        metadata["resourceVersion"] = resource_version
    metadata["$deleteFromPrimitiveList/finalizers"] = [TRACKING_FINALIZER]
    return {"metadata": metadata}


class OrphanPodRelease:
    def __init__(
        self, client: Client, control: PodOperations, jobs: Informer[Job], pods: Informer[WorkloadPod]
    ) -> None:
        self._client = client
        self._control = control
        self._jobs = jobs
        self._pods = pods
        # UIDs of deleted Jobs, so that a Job is read once for all of its pods.
        self._gone = LruCache[str, bool](_MOST_REMEMBERED)

    def note_gone(self, uid: str) -> None:
        self._gone.put(uid, True)

    async def reconcile(self, key: Key) -> Again | None:
        pod = self._pods.cache.get(*key)
        if pod is None or not is_tracked(pod):
            return None
        if not (self._pods.is_live and self._jobs.is_live):
            return Again(CATCH_UP_SECONDS)
        reference = controller_of(pod.metadata)
        if reference is not None and not await self._is_over(key[0], reference):
            return None
        patch = finalizer_patch(pod, resource_version=pod.metadata.resource_version)
        try:
            await self._control.patch_pod(pod.metadata.namespace, pod.metadata.name, patch)
        except NotFoundError:
            return None
        return None

    async def _is_over(self, namespace: str, reference: OwnerReference) -> bool:
        """Whether no Job will count the pods of this owner."""
        if reference.kind != JOBS.kind or reference.api_version != JOBS.api_version:
            return False
        job = self._jobs.cache.get(namespace, reference.name)
        if job is not None and job.metadata.uid == reference.uid:
            return has_finished(job) and not is_managed_elsewhere(job)
        if self._gone.get(reference.uid):
            return True
        try:
            fresh = await self._client.get(JOBS, reference.name, namespace, view=MetadataOnly)
            is_gone = fresh.metadata.uid != reference.uid
        except NotFoundError:
            is_gone = True
        if is_gone:
            self.note_gone(reference.uid)
        return is_gone


class OrphanPodHandler:
    """Handles tracked pods without an owner, or terminating ones whose Job is gone or has finished."""

    def __init__(self, jobs: CacheReader[Job], queue: Queue[Key]) -> None:
        self._jobs = jobs
        self._queue = queue

    def on_add(self, pod: WorkloadPod) -> None:
        if is_tracked(pod) and self._is_orphan(pod):
            self._queue.add(key_of(pod))

    def on_update(self, old: WorkloadPod, new: WorkloadPod) -> None:
        self.on_add(new)

    def on_delete(self, pod: WorkloadPod) -> None:
        """The pod is gone: nothing to release."""

    def _is_orphan(self, pod: WorkloadPod) -> bool:
        reference = controller_of(pod.metadata)
        if reference is None:
            return True
        if reference.kind != JOBS.kind or pod.metadata.deletion_timestamp is None:
            return False
        job = self._jobs.get(pod.metadata.namespace, reference.name)
        return job is None or job.metadata.uid != reference.uid or has_finished(job)
