"""Deletes finished Jobs whose `ttlSecondsAfterFinished` has passed, with their dependents.

A cache may lag behind a change of the TTL, so the Job is read from the server before it is deleted; the delete
carries its UID.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from podlife.api.codec import parse_time
from podlife.client import JOBS, DeleteOptions
from podlife.controller import Again, Controller, ControlPlane
from podlife.errors import ConflictError, NotFoundError
from podlife.informer.indexes import Key
from podlife.workloads.job.views import INDEXERS, Job
from podlife.workloads.pod_event_handler import key_of
from podlife.workqueue import RateLimitedQueue


def time_to_live(job: Job, now: datetime) -> timedelta | None:
    """How long a finished Job stays, zero or less if it is due; None if it has no TTL or is being deleted."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or job.is_deleting:
        return None
    for condition in job.status.get("conditions") or ():
        if condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True":
            try:
                finished = parse_time(condition.get("lastTransitionTime") or "")
            except (ValueError, OverflowError):
                # Without a valid finish time the Job is kept.
                return None
            # This order avoids an overflow.
            return finished - now + timedelta(seconds=ttl)
    return None


class TtlAfterFinishedController:
    name = "ttl-after-finished-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 5) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._action_log = plane.action_log
        self._jobs = plane.informer(JOBS, view=Job, indexers=INDEXERS)
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("ttl_jobs_to_delete")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._jobs.add_handler(self)

    async def run(self) -> None:
        await self.controller.run()

    # The informer's handler: most Jobs have no TTL.

    def on_add(self, job: Job) -> None:
        if time_to_live(job, self._clock.now()) is not None:
            self.queue.add(key_of(job))

    def on_update(self, old: Job, new: Job) -> None:
        self.on_add(new)

    def on_delete(self, job: Job) -> None:
        """Nothing to do."""

    async def reconcile(self, key: Key) -> Again | None:
        job = self._jobs.cache.get(*key)
        left = time_to_live(job, self._clock.now()) if job is not None else None
        if left is not None and left <= timedelta(0):
            left = await self._delete_if_due(*key)
        return Again.by_clock(left.total_seconds()) if left is not None else None

    async def _delete_if_due(self, namespace: str, name: str) -> timedelta | None:
        """Return the remaining time, if the server's version of the Job is not due."""
        try:
            fresh = await self._client.get(JOBS, name, namespace, view=Job)
            left = time_to_live(fresh, self._clock.now())
            if left is None or left > timedelta(0):
                return left
            options = DeleteOptions(propagation_policy="Foreground", uid=fresh.metadata.uid)
            await self._client.delete(JOBS, name, namespace, options=options)
            self._action_log.note(
                f"Job {namespace}/{name}", "deleted, its time to live is over", "times deleted"
            )
        except (NotFoundError, ConflictError):
            # A conflict: the new state arrives with its own event.
            return None
        return None
