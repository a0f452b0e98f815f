"""One sync of a Job: evaluate its conditions, create or delete pods, count.

The order of the writes makes the counts exact (see `sync_context`), and the finished condition is written before pods
are deleted for it: a sync that continues after a crash reaches the same result. The input must not be older than the
controller's own last write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from podlife.client import JOBS, Client
from podlife.clock import Clock
from podlife.controller import Again, OwnWrites
from podlife.informer.indexes import Key
from podlife.podcontrol import EventRecorder, Owner, is_ready, owner_of, validate_selector
from podlife.workloads.job.finished_condition import COMPLETED, has_completed, judge, time_to_deadline
from podlife.workloads.job.plan import JobPlan, plan
from podlife.workloads.job.pod_control import Done, JobPodControl
from podlife.workloads.job.pods import PodBackoff
from podlife.workloads.job.status import (
    Activity,
    account,
    finish,
    held_uids,
    settle,
    with_start,
    with_suspension,
    with_verdict,
)
from podlife.workloads.job.sync_context import SyncContext
from podlife.workloads.job.views import Job
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.status import ConditionDict, changed_fields, find_condition, patch_status
from podlife.workloads.views import Status, WorkloadPod

_UNCOUNTED = "uncountedTerminatedPods"
BATCH_SECONDS = 1.0
"""Interval at which events of a Job's pods are handled together."""


@dataclass(frozen=True, slots=True)
class _Step:
    """What was done to pods, and the resulting status without counts."""

    status: Status
    activity: Activity
    verdict: ConditionDict | None = None
    wait: timedelta | None = None
    error: Exception | None = None


class JobSync:
    """Keeps the consecutive failures of each Job, by key and UID, until `forget`."""

    def __init__(
        self,
        client: Client,
        writes: OwnWrites,
        pod_control: JobPodControl,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._writes = writes
        self._pod_control = pod_control
        self._recorder = recorder
        self._clock = clock
        # Values include the UID of the Job.
        self._backoffs: dict[Key, tuple[str, PodBackoff]] = {}

    def forget(self, key: Key) -> None:
        self._backoffs.pop(key, None)

    async def run(self, key: Key, job: Job, pods: list[WorkloadPod], *, is_settled: bool) -> Again | None:
        """`is_settled`: whether all expected creations and deletions of pods have been observed. Raises the last error,
        after everything else was done and counted; NotFoundError if the Job is gone."""
        owner = owner_of(job, JOBS)
        uid, backoff = self._backoffs.get(key, ("", PodBackoff()))
        if uid != job.metadata.uid:
            backoff = PodBackoff()
        context = SyncContext(job, pods, backoff, self._clock.now())
        record = JobStatusWriter(self._client, self._writes, job)
        verdict = judge(context)
        if verdict is None:
            may_act = is_settled and not job.is_deleting
            step = await self._continue(key, owner, context, may_act=may_act)
        else:
            step = await self._end(record, owner, context, verdict)
            if not is_settled:
                # More pods to delete and count are still to be observed.
                step = replace(step, verdict=None)
        is_whole = await self._count(record, context, step)
        if step.error is not None:
            raise step.error
        return _next_sync(context, step, is_whole=is_whole)

    async def _end(
        self, record: JobStatusWriter, owner: Owner, context: SyncContext, verdict: ConditionDict
    ) -> _Step:
        """The Job has finished: delete its active pods."""
        status = with_verdict(_started(context), verdict, context.now)
        if context.active:
            await record.write(status)
            status = record.status
        done = await self._pod_control.delete(owner, context.active)
        # A pod that could not be deleted may still succeed, so the outcome is open until then.
        is_over = done.error is None
        return _Step(status, _activity(context, done), verdict if is_over else None, error=done.error)

    async def _continue(self, key: Key, owner: Owner, context: SyncContext, *, may_act: bool) -> _Step:
        """The Job continues: create or delete pods, unless it is suspended."""
        status = _started(context)
        wanted = plan(context) if may_act else JobPlan()
        done = Done()
        if wanted.delete:
            done = await self._pod_control.delete_surplus(key, owner, wanted.delete)
        elif wanted.create:
            validate_selector(context.job.selector, context.spec.template)
            done = await self._pod_control.create(key, owner, context, wanted)
        activity = _activity(context, done)
        verdict = None
        if has_completed(context, activity.active):
            verdict = COMPLETED
            status = with_verdict(status, verdict, context.now)
        elif may_act:
            status = with_suspension(status, is_suspended=context.spec.suspend, now=context.now)
        return _Step(status, activity, verdict, wanted.wait, done.error)

    async def _count(self, record: JobStatusWriter, context: SyncContext, step: _Step) -> bool:
        """Update the status and release counted pods; returns whether all finished pods are counted."""
        job = context.job
        counted = account(context, step.status, step.activity, step.verdict)
        if await record.write(counted.status):
            self._backoffs[key_of(job)] = (job.metadata.uid, context.backoff)
            self._record_suspension(job, record.status)
        released = await self._pod_control.release(counted.release)
        status = settle(record.status, held_uids(context) - {pod.metadata.uid for pod in released.pods})
        if released.error is not None:
            await record.write(status)
            raise released.error
        final = None
        if step.verdict is not None and counted.is_whole:
            final = finish(status, step.verdict, self._clock.now())
        if await record.write(final or status) and final is not None:
            self._record_end(job, record.status)
        return counted.is_whole

    # Events

    def _record_suspension(self, job: Job, status: Status) -> None:
        now, before = (find_condition(each.get("conditions"), "Suspended") for each in (status, job.status))
        if now is not None and now != before:
            reason = "Suspended" if now["status"] == "True" else "Resumed"
            self._event(job, "Normal", reason, now.get("message", ""))

    def _record_end(self, job: Job, status: Status) -> None:
        failure = find_condition(status.get("conditions"), "Failed")
        if failure is not None:
            self._event(job, "Warning", failure.get("reason", ""), failure.get("message", ""))
            return
        completions = job.spec.completions
        if completions is not None and (status.get("succeeded") or 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self._event(job, "Warning", "TooManySucceededPods", message)
        self._event(job, "Normal", "Completed", "Job completed")

    def _event(self, job: Job, type_: str, reason: str, message: str) -> None:
        self._recorder.event(owner_of(job, JOBS).object_reference(), type_, reason, message)


def _started(context: SyncContext) -> Status:
    return with_start(context.job.status, is_suspended=context.spec.suspend, now=context.now)


def _activity(context: SyncContext, done: Done) -> Activity:
    deleted = len(done.pods)
    return Activity(
        active=len(context.active) + done.created - deleted,
        ready=context.ready - sum(1 for pod in done.pods if is_ready(pod)),
        terminating=len(context.going) + deleted,
    )


def _next_sync(context: SyncContext, step: _Step, *, is_whole: bool) -> Again | None:
    waits = []
    if step.wait is not None:
        # Other events until then are handled together.
        waits.append(max(BATCH_SECONDS, step.wait.total_seconds()))
    if step.verdict is None and (left := time_to_deadline(context)) is not None:
        # After the deadline the outcome is decided, and only pod events are awaited.
        waits.append(left.total_seconds() if left > timedelta(0) else BATCH_SECONDS)
    if not is_whole:
        waits.append(BATCH_SECONDS)
    return Again.by_clock(min(waits)) if waits else None


class JobStatusWriter:
    """Unlike the status of other workloads it is not applied to a newer state after a conflict: counts are only valid
    for the state they were counted from."""

    def __init__(self, client: Client, writes: OwnWrites, job: Job) -> None:
        self._client = client
        self._writes = writes
        self._job = job
        self._resource_version = job.metadata.resource_version
        self.status: Status = job.status

    async def write(self, status: Status) -> bool:
        """Return whether anything changed. Raises ConflictError after a concurrent write, NotFoundError if the Job is
        gone, and the server's other errors."""
        patch = changed_fields(self.status, status)
        if not patch:
            return False
        if _UNCOUNTED in patch:
            # A merge patch does not change omitted fields.
            named = patch[_UNCOUNTED] or {}
            patch[_UNCOUNTED] = {how: named.get(how) for how in ("succeeded", "failed")}
        written = await patch_status(self._client, JOBS, self._job.metadata, patch, self._resource_version)
        self._writes.note(key_of(self._job), JOBS, written)
        self._resource_version = written["metadata"]["resourceVersion"]
        self.status = written.get("status") or {}
        return True
