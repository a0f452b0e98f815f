"""What a Job does to its pods: create, delete, and let them go once they are counted.

Nothing is raised for a pod that could not be handled: the others go on, the status is written all the same, and the
error comes back with what was done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from podlife.errors import NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    Doubts,
    NamespaceTerminatingError,
    Owner,
    PodOperations,
    UidTrackedExpectations,
    slow_start,
)
from podlife.workloads.job.orphan_pods import finalizer_patch
from podlife.workloads.job.plan import Plan
from podlife.workloads.job.pod_template import blueprint
from podlife.workloads.job.pods import is_tracked
from podlife.workloads.job.sync_context import Situation
from podlife.workloads.views import Pod

__all__ = ["Done", "PodActs"]


@dataclass(frozen=True, slots=True)
class Done:
    """The pods for which it is done, or which were gone already; and the first error of the others."""

    pods: tuple[Pod, ...] = ()
    created: int = 0
    error: Exception | None = None


class PodActs:
    def __init__(self, control: PodOperations, expectations: UidTrackedExpectations, doubts: Doubts) -> None:
        self._control = control
        self._expectations = expectations
        self._doubts = doubts

    async def create(self, key: Key, owner: Owner, situation: Situation, wanted: Plan) -> Done:
        self._expectations.expect_creations(key, wanted.create)
        reference = owner.controller_ref()
        # One after the other as they are begun: the lowest index first.
        indexes = iter(wanted.indexes)
        unmade = 0

        async def create() -> None:
            nonlocal unmade
            made_of = blueprint(situation, next(indexes, None))
            try:
                await self._control.create_pods_with_generate_name(
                    owner.namespace, made_of.template, owner, reference, made_of.generate_name
                )
            except NamespaceTerminatingError:
                # Nothing will come of it however often it is tried, and nobody needs to be told.
                unmade += 1

        made = await slow_start(wanted.create, create)
        created = made.succeeded - unmade
        # What was not made is not waited for.
        self._expectations.add(key, creations=created - wanted.create)
        self._doubts.note(key, made.errors)
        return Done(created=created, error=made.errors[0] if made.errors else None)

    async def take_back(self, key: Key, owner: Owner, pods: Sequence[Pod]) -> Done:
        """Delete pods that are too many: they count as nothing, so the finalizer goes first."""
        self._expectations.expect_deletions(key, [pod.metadata.uid for pod in pods])

        async def take_back(pod: Pod) -> None:
            try:
                if is_tracked(pod):
                    await self._release(pod)
                await self._delete(owner, pod)
            except PodlifeError:
                self._expectations.observe_deletion(key, pod.metadata.uid)
                raise

        return await _each(pods, take_back)

    async def delete(self, owner: Owner, pods: Sequence[Pod]) -> Done:
        """Delete pods of a Job that has come to its end: they stay until they are counted."""
        return await _each(pods, lambda pod: self._delete(owner, pod))

    async def release(self, pods: Sequence[Pod]) -> Done:
        """Take the tracking finalizer off pods that are counted."""
        return await _each(pods, self._release)

    async def _delete(self, owner: Owner, pod: Pod) -> None:
        metadata = pod.metadata
        await self._control.delete_pod(metadata.namespace, metadata.name, owner, uid=metadata.uid)

    async def _release(self, pod: Pod) -> None:
        await self._control.patch_pod(pod.metadata.namespace, pod.metadata.name, finalizer_patch(pod))


async def _each(pods: Sequence[Pod], act: Callable[[Pod], Awaitable[None]]) -> Done:
    errors = await asyncio.gather(*(_attempt(pod, act) for pod in pods))
    done = tuple(pod for pod, error in zip(pods, errors, strict=True) if error is None)
    return Done(done, error=next((error for error in errors if error is not None), None))


async def _attempt(pod: Pod, act: Callable[[Pod], Awaitable[None]]) -> Exception | None:
    try:
        await act(pod)
    except NotFoundError:
        return None
    except PodlifeError as error:
        return error
    return None
