"""One pass over a Job: judge, create or delete, count.

The order of writes is what makes it exact (see `situation`), and a verdict is written before pods are deleted for it:
whoever goes on after a crash comes to the same end. What it is given must not be older than its own last write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from podlife.client import Client
from podlife.clock import Clock
from podlife.controller import Again, OwnWrites
from podlife.informer.indexes import Key
from podlife.podcontrol import EventRecorder, Owner, is_ready, validate_selector
from podlife.workloads.conditions import Condition, find_condition
from podlife.workloads.job.backoff import Backoff
from podlife.workloads.job.event_handlers import BATCH_SECONDS
from podlife.workloads.job.finished_condition import (
    COMPLETED,
    has_completed,
    judge,
    time_to_deadline,
)
from podlife.workloads.job.plan import Plan, plan
from podlife.workloads.job.pod_control import Done, PodActs
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
from podlife.workloads.job.status_writer import Record
from podlife.workloads.job.sync_context import Situation
from podlife.workloads.job.views import Job, owner_of_job, selector_of
from podlife.workloads.pod_event_handler import key_of
from podlife.workloads.views import Pod, Status

__all__ = ["JobSync", "Sight"]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a pass begins with."""

    job: Job
    pods: list[Pod]
    # Whether the pods it created and deleted have come and gone as it expects.
    is_settled: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """What was done about pods, and the status that follows from it but for what is counted."""

    status: Status
    activity: Activity
    verdict: Condition | None = None
    wait: timedelta | None = None
    error: Exception | None = None


class JobSync:
    """Remembers failures in a row until it is told to forget them; those of an earlier Job of the same name are not
    believed."""

    def __init__(
        self, client: Client, writes: OwnWrites, acts: PodActs, recorder: EventRecorder, clock: Clock
    ) -> None:
        self._client = client
        self._writes = writes
        self._acts = acts
        self._recorder = recorder
        self._clock = clock
        # With the UID of the Job.
        self._backoffs: dict[Key, tuple[str, Backoff]] = {}

    def forget(self, key: Key) -> None:
        self._backoffs.pop(key, None)

    async def run(self, key: Key, sight: Sight) -> Again | None:
        """Raises what went wrong last; what could be done and counted, is. NotFoundError: the Job is gone."""
        job = sight.job
        owner = owner_of_job(job)
        uid, backoff = self._backoffs.get(key, ("", Backoff()))
        if uid != job.metadata.uid:
            backoff = Backoff()
        situation = Situation(job, sight.pods, backoff, self._clock.now())
        record = Record(self._client, self._writes, job)
        verdict = judge(situation)
        if verdict is None:
            may_act = sight.is_settled and not job.is_deleting
            step = await self._go_on(key, owner, situation, may_act=may_act)
        else:
            step = await self._end(record, owner, situation, verdict)
            if not sight.is_settled:
                # Pods are still to be seen that have to go and be counted as well.
                step = replace(step, verdict=None)
        is_whole = await self._count(record, situation, step)
        if step.error is not None:
            raise step.error
        return _next_look(situation, step, is_whole=is_whole)

    async def _end(self, record: Record, owner: Owner, situation: Situation, verdict: Condition) -> _Step:
        """The Job is to end: no pod stays at work."""
        status = with_verdict(_started(situation), verdict, situation.now)
        if situation.active:
            await record.write(status)
            status = record.status
        done = await self._acts.delete(owner, situation.active)
        # A pod that could not be deleted may still succeed: nothing is over before it is on its way.
        is_over = done.error is None
        return _Step(status, _activity(situation, done), verdict if is_over else None, error=done.error)

    async def _go_on(self, key: Key, owner: Owner, situation: Situation, *, may_act: bool) -> _Step:
        """The Job needs its pods, or would if it were not suspended."""
        status = _started(situation)
        wanted = plan(situation) if may_act else Plan()
        done = Done()
        if wanted.delete:
            done = await self._acts.take_back(key, owner, wanted.delete)
        elif wanted.create:
            validate_selector(selector_of(situation.job), situation.spec.template)
            done = await self._acts.create(key, owner, situation, wanted)
        activity = _activity(situation, done)
        verdict = None
        if has_completed(situation, activity.active):
            verdict = COMPLETED
            status = with_verdict(status, verdict, situation.now)
        elif may_act:
            status = with_suspension(status, is_suspended=situation.spec.suspend, now=situation.now)
        return _Step(status, activity, verdict, wanted.wait, done.error)

    async def _count(self, record: Record, situation: Situation, step: _Step) -> bool:
        """Bring the status up to date and let counted pods go; says whether all that have finished are counted."""
        job = situation.job
        counted = account(situation, step.status, step.activity, step.verdict)
        if await record.write(counted.status):
            self._backoffs[key_of(job)] = (job.metadata.uid, situation.backoff)
            self._tell_of_suspension(job, record.status)
        released = await self._acts.release(counted.release)
        status = settle(record.status, held_uids(situation) - {pod.metadata.uid for pod in released.pods})
        if released.error is not None:
            await record.write(status)
            raise released.error
        final = None
        if step.verdict is not None and counted.is_whole:
            final = finish(status, step.verdict, self._clock.now())
        if await record.write(final or status) and final is not None:
            self._tell_of_end(job, record.status)
        return counted.is_whole

    # Events

    def _tell_of_suspension(self, job: Job, status: Status) -> None:
        now, before = (find_condition(each.get("conditions"), "Suspended") for each in (status, job.status))
        if now is not None and now != before:
            reason = "Suspended" if now["status"] == "True" else "Resumed"
            self._tell(job, "Normal", reason, now.get("message", ""))

    def _tell_of_end(self, job: Job, status: Status) -> None:
        failure = find_condition(status.get("conditions"), "Failed")
        if failure is not None:
            self._tell(job, "Warning", failure.get("reason", ""), failure.get("message", ""))
            return
        completions = job.spec.completions
        if completions is not None and (status.get("succeeded") or 0) > completions:
            message = "Too many succeeded pods running after completion count reached"
            self._tell(job, "Warning", "TooManySucceededPods", message)
        self._tell(job, "Normal", "Completed", "Job completed")

    def _tell(self, job: Job, type_: str, reason: str, message: str) -> None:
        self._recorder.event(owner_of_job(job).object_reference(), type_, reason, message)


def _started(situation: Situation) -> Status:
    return with_start(situation.job.status, is_suspended=situation.spec.suspend, now=situation.now)


def _activity(situation: Situation, done: Done) -> Activity:
    deleted = len(done.pods)
    return Activity(
        active=len(situation.active) + done.created - deleted,
        ready=situation.ready - sum(1 for pod in done.pods if is_ready(pod)),
        terminating=len(situation.going) + deleted,
    )


def _next_look(situation: Situation, step: _Step, *, is_whole: bool) -> Again | None:
    waits = []
    if step.wait is not None:
        # What else happens until then is looked at together.
        waits.append(max(BATCH_SECONDS, step.wait.total_seconds()))
    if step.verdict is None and (left := time_to_deadline(situation)) is not None:
        # Past it the Job has been judged, and only waits for news of its pods.
        waits.append(left.total_seconds() if left > timedelta(0) else BATCH_SECONDS)
    if not is_whole:
        waits.append(BATCH_SECONDS)
    return Again.by_clock(min(waits)) if waits else None
