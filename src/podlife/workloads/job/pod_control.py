"""Creates and deletes the pods of a Job, and removes the finalizer of counted ones.

A failure for one pod does not stop the others and does not prevent the status update: it is returned with the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from podlife.errors import NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    NamespaceTerminatingError,
    Owner,
    PodOperations,
    UidTrackedExpectations,
    UncertainCreates,
    slow_start,
)
from podlife.workloads.job.orphan_pods import finalizer_patch
from podlife.workloads.job.plan import JobPlan
from podlife.workloads.job.pod_template import blueprint
from podlife.workloads.job.pods import is_tracked
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.views import WorkloadPod


@dataclass(frozen=True, slots=True)
class Done:
    """The pods that were handled or already gone, and the first error of the others."""

    pods: tuple[WorkloadPod, ...] = ()
    created: int = 0
    error: Exception | None = None


class JobPodControl:
    def __init__(
        self, control: PodOperations, expectations: UidTrackedExpectations, uncertain: UncertainCreates
    ) -> None:
        self._control = control
        self._expectations = expectations
        self._uncertain = uncertain

    async def create(self, key: Key, owner: Owner, context: SyncContext, wanted: JobPlan) -> Done:
        self._expectations.expect_creations(key, wanted.create)
        reference = owner.controller_ref()
        # Taken in the order in which creations start: lowest index first.
        indexes = iter(wanted.indexes)
        unmade = 0

        async def create() -> None:
            nonlocal unmade
            made_of = blueprint(context, next(indexes, None))
            try:
                await self._control.create_pods_with_generate_name(
                    owner.namespace, made_of.template, owner, reference, made_of.generate_name
                )
            except NamespaceTerminatingError:
                # The namespace is terminating: retries cannot succeed, and no event is needed.
                unmade += 1

        made = await slow_start(wanted.create, create)
        created = made.succeeded - unmade
        # Failed creations are not expected.
        self._expectations.add(key, creations=created - wanted.create)
        self._uncertain.note(key, made.errors)
        return Done(created=created, error=made.errors[0] if made.errors else None)

    async def delete_surplus(self, key: Key, owner: Owner, pods: Sequence[WorkloadPod]) -> Done:
        """Delete surplus pods: they are not counted, so the finalizer is removed first."""
        self._expectations.expect_deletions(key, [pod.metadata.uid for pod in pods])

        async def delete_surplus(pod: WorkloadPod) -> None:
            try:
                if is_tracked(pod):
                    await self._release(pod)
                await self._delete(owner, pod)
            except PodlifeError:
                self._expectations.observe_deletion(key, pod.metadata.uid)
                raise

        return await _each(pods, delete_surplus)

    async def delete(self, owner: Owner, pods: Sequence[WorkloadPod]) -> Done:
        """Delete pods of a finished Job; the finalizer keeps them until they are counted."""
        return await _each(pods, lambda pod: self._delete(owner, pod))

    async def release(self, pods: Sequence[WorkloadPod]) -> Done:
        """Remove the tracking finalizer from counted pods."""
        return await _each(pods, self._release)

    async def _delete(self, owner: Owner, pod: WorkloadPod) -> None:
        metadata = pod.metadata
        await self._control.delete_pod(metadata.namespace, metadata.name, owner, uid=metadata.uid)

    async def _release(self, pod: WorkloadPod) -> None:
        await self._control.patch_pod(pod.metadata.namespace, pod.metadata.name, finalizer_patch(pod))


async def _each(pods: Sequence[WorkloadPod], act: Callable[[WorkloadPod], Awaitable[None]]) -> Done:
    errors = await asyncio.gather(*(_attempt(pod, act) for pod in pods))
    done = tuple(pod for pod, error in zip(pods, errors, strict=True) if error is None)
    return Done(done, error=next((error for error in errors if error is not None), None))


async def _attempt(pod: WorkloadPod, act: Callable[[WorkloadPod], Awaitable[None]]) -> Exception | None:
    try:
        await act(pod)
    except NotFoundError:
        return None
    except PodlifeError as error:
        return error
    return None
