"""CronJob controller: starts Jobs by a schedule, and deletes the oldest finished ones.

The name of a Job is made of its start time, so a start that is repeated after a crash or a lost response creates no
second Job. Nothing is decided while the caches are stale or lack the controller's own writes, and every delete carries
the UID of the Job. `start_times` and `jobs` decide; the Jobs themselves are left to the Job controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import NamedTuple

from msgspec.structs import replace

from podlife.api.codec import Object, format_time
from podlife.api.cron import Schedule, load_zone, parse_schedule
from podlife.api.views import controller_of
from podlife.client import CRON_JOBS, JOBS, DeleteOptions
from podlife.clock import add_seconds
from podlife.controller import Again, Controller, ControlPlane, OwnWrites
from podlife.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import EnqueueOwner, Owner, as_namespace_terminating, owner_of, pods_of_owner
from podlife.workloads.cronjob.jobs import (
    active_of,
    finished_condition,
    history_beyond_limits,
    job_from_template,
    job_name,
    reference_to,
    with_success,
    without_active,
)
from podlife.workloads.cronjob.start_times import InvalidScheduleError, missed_start, seconds_to_next_start
from podlife.workloads.cronjob.views import CronJob
from podlife.workloads.job.views import INDEXERS, Job
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, key_of
from podlife.workloads.status import CATCH_UP_SECONDS, StatusWriter
from podlife.workloads.views import Status
from podlife.workqueue import RateLimitedQueue


class _Wait(NamedTuple):
    """Nothing is to be done until then, unless the CronJob or its Jobs change."""

    until: datetime
    versions: frozenset[str]


@dataclass(slots=True)
class _Turn:
    """One reconcile: its status is changed step by step and written once."""

    cron_job: CronJob
    owner: Owner
    jobs: list[Job]
    status: Status
    now: datetime


class CronJobController:
    name = "cronjob-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 5) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._recorder = plane.recorder(self.name)
        self._cron_jobs = plane.informer(CRON_JOBS, view=CronJob, indexers=OWNER_INDEXERS)
        self._jobs = plane.informer(JOBS, view=Job, indexers=INDEXERS)
        self._writes = OwnWrites({CRON_JOBS: self._cron_jobs, JOBS: self._jobs})
        self._status = StatusWriter(plane.client, CRON_JOBS, self._writes)
        self._waits: dict[Key, _Wait] = {}
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("cronjob")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._cron_jobs.add_handler(self)
        self._jobs.add_handler(EnqueueOwner(self.queue, CRON_JOBS, self._cron_jobs.cache))

    async def run(self) -> None:
        await self.controller.run()

    # The informer's handler for CronJobs.

    def on_add(self, cron_job: CronJob) -> None:
        self.queue.add(key_of(cron_job))

    def on_update(self, old: CronJob, new: CronJob) -> None:
        """A new schedule counts from its next start time: what it would have missed is not started."""
        if old.metadata.uid != new.metadata.uid:
            self.on_delete(old)
        elif (old.spec.schedule, old.spec.time_zone) != (new.spec.schedule, new.spec.time_zone):
            try:
                schedule = _schedule_of(new)
            except ValueError:
                message = f"unparseable schedule for cronjob: {new.spec.schedule}"
                self._event(_owner(new), "Warning", "UnParseableCronJobSchedule", message)
                return
            if (again := self._wait(new, schedule, self._jobs_of(_owner(new)))) is not None:
                self.queue.add_after(key_of(new), again.seconds)
            return
        self.queue.add(key_of(new))

    def on_delete(self, cron_job: CronJob) -> None:
        self._forget(key_of(cron_job))

    async def reconcile(self, key: Key) -> Again | None:
        """Raises the server's errors."""
        cron_job = self._cron_jobs.cache.get(*key)
        if cron_job is None:
            self._forget(key)
            return None
        if not (self._cron_jobs.is_live and self._jobs.is_live and self._writes.is_seen(key)):
            return Again(CATCH_UP_SECONDS)
        owner, now = _owner(cron_job), self._clock.now()
        jobs = self._jobs_of(owner)
        wait = self._waits.get(key)
        if wait is not None and now < wait.until and wait.versions == _versions(cron_job, jobs):
            # The time is checked again and again, because the clock may be set.
            return Again.by_clock((wait.until - now).total_seconds())
        self._waits.pop(key, None)
        turn = _Turn(cron_job, owner, jobs, cron_job.status, now)
        schedule, failure = None, None
        try:
            schedule = await self._sync(turn)
        except PodlifeError as error:
            failure = error
        # What was done is recorded even if the rest has failed.
        await self._status.write(cron_job, turn.status)
        if failure is not None:
            raise failure
        return self._wait(replace(cron_job, status=turn.status), schedule, jobs) if schedule else None

    def _wait(self, cron_job: CronJob, schedule: Schedule, jobs: list[Job]) -> Again | None:
        now = self._clock.now()
        seconds = seconds_to_next_start(cron_job, schedule, now)
        if seconds is None:
            return None
        self._waits[key_of(cron_job)] = _Wait(add_seconds(now, seconds), _versions(cron_job, jobs))
        return Again.by_clock(seconds)

    async def _sync(self, turn: _Turn) -> Schedule | None:
        """The schedule that determines the next sync; None if only an event can change anything."""
        for job in history_beyond_limits(turn.cron_job, turn.jobs):
            if not job.is_deleting:
                await self._delete(turn, job.metadata.name, job.metadata.uid)
        await self._observe_jobs(turn)
        await self._drop_missing(turn)
        if turn.cron_job.is_deleting or (schedule := self._usable_schedule(turn)) is None:
            return None
        try:
            scheduled = self._due_start(turn, schedule)
        except InvalidScheduleError as error:
            message = f"invalid schedule: {turn.cron_job.spec.schedule} : {error}"
            self._event(turn.owner, "Warning", "InvalidSchedule", message)
            return None
        if scheduled is not None:
            await self._start(turn, scheduled)
        return schedule

    async def _observe_jobs(self, turn: _Turn) -> None:
        """Move finished Jobs out of the active ones."""
        for job in turn.jobs:
            name, condition = job.metadata.name, finished_condition(job)
            is_active = _is_active(turn.status, job.metadata.uid)
            if not is_active and not condition:
                metadata = turn.cron_job.metadata
                fresh = await self._client.get(CRON_JOBS, metadata.name, metadata.namespace, view=CronJob)
                if fresh.metadata.uid == metadata.uid and _is_active(fresh.status, job.metadata.uid):
                    turn.status = fresh.status
                    continue
                message = f"Saw a job that the controller did not create or forgot: {name}"
                self._event(turn.owner, "Warning", "UnexpectedJob", message)
            if is_active and condition:
                turn.status = without_active(turn.status, job.metadata.uid)
                message = f"Saw completed job: {name}, condition: {condition}"
                self._event(turn.owner, "Normal", "SawCompletedJob", message)
            if condition == "Complete":
                turn.status = with_success(turn.status, job)

    async def _drop_missing(self, turn: _Turn) -> None:
        children = {job.metadata.uid for job in turn.jobs}
        for active in active_of(turn.status):
            if active.get("uid") in children:
                continue
            # Asked of the server, because the cache may lag behind.
            name = active.get("name", "")
            try:
                job = await self._client.get(JOBS, name, turn.owner.namespace, view=Job)
                is_missing = job.metadata.uid != active.get("uid")
            except NotFoundError:
                is_missing = True
            if is_missing:
                self._event(turn.owner, "Normal", "MissingJob", f"Active job went missing: {name}")
                turn.status = without_active(turn.status, active.get("uid", ""))

    def _usable_schedule(self, turn: _Turn) -> Schedule | None:
        """None if it is suspended or its schedule or time zone is invalid, which is reported."""
        spec = turn.cron_job.spec
        try:
            load_zone(spec.time_zone or "")
        except ValueError as error:
            message = f'invalid timeZone: "{spec.time_zone}": {error}'
            self._event(turn.owner, "Warning", "UnknownTimeZone", message)
            return None
        if spec.suspend:
            return None
        if "TZ" in spec.schedule:
            message = (
                f'CRON_TZ or TZ used in schedule "{spec.schedule}" is not officially supported, see '
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
            self._event(turn.owner, "Warning", "UnsupportedSchedule", message)
        try:
            return _schedule_of(turn.cron_job)
        except ValueError as error:
            message = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._event(turn.owner, "Warning", "UnparseableSchedule", message)
            return None

    def _due_start(self, turn: _Turn, schedule: Schedule) -> datetime | None:
        """The start time for which a Job is to be created now. Raises InvalidScheduleError."""
        current, spec = replace(turn.cron_job, status=turn.status), turn.cron_job.spec
        missed = missed_start(current, schedule, turn.now)
        scheduled = missed.latest
        if scheduled is None:
            return None
        if missed.is_many:
            message = (
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds "
                "or check clock skew"
            )
            self._event(turn.owner, "Warning", "TooManyMissedTimes", message)
        deadline = spec.starting_deadline_seconds
        if deadline is not None and (turn.now - scheduled).total_seconds() > deadline:
            message = f"Missed scheduled time to start a job: {format_datetime(scheduled)}"
            self._event(turn.owner, "Warning", "MissSchedule", message)
            return None
        is_started = job_name(current, scheduled) in {each.get("name") for each in active_of(turn.status)}
        if is_started or current.last_schedule_time == scheduled:
            return None
        if spec.concurrency_policy == "Forbid" and active_of(turn.status):
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event(turn.owner, "Normal", "JobAlreadyActive", message)
            return None
        return scheduled

    async def _start(self, turn: _Turn, scheduled: datetime) -> None:
        if turn.cron_job.spec.concurrency_policy == "Replace":
            for active in active_of(turn.status):
                await self._replace(turn, active)
        job = await self._create(turn, scheduled)
        if job is None:
            return
        started = {"active": [*active_of(turn.status), reference_to(job)]}
        turn.status = {**turn.status, **started, "lastScheduleTime": format_time(scheduled)}

    async def _replace(self, turn: _Turn, active: Object) -> None:
        name = active.get("name", "")
        try:
            await self._client.get(JOBS, name, turn.owner.namespace, view=Job)
        except ApiError as error:
            self._event(turn.owner, "Warning", "FailedGet", f"Get job: {error}")
            raise
        if not await self._delete(turn, name, active.get("uid", "")):
            raise PodlifeError(f"could not replace job {turn.owner.namespace}/{name}")

    async def _create(self, turn: _Turn, scheduled: datetime) -> Object | None:
        """The Job for this start time. None if it exists already and is not a new one of this CronJob, or if the
        namespace is terminating."""
        body = job_from_template(turn.cron_job, turn.owner, scheduled)
        name, namespace = body["metadata"]["name"], turn.owner.namespace
        try:
            job = await self._client.create(JOBS, body, namespace)
        except AlreadyExistsError:
            # Created before a crash, or by another client.
            existing = await self._client.get(JOBS, name, namespace, view=Job)
            controller = controller_of(existing.metadata)
            is_own = controller is not None and controller.uid == turn.owner.uid
            if not is_own or _is_active(turn.status, existing.metadata.uid):
                return None
            return await self._client.get(JOBS, name, namespace)
        except ApiError as error:
            if as_namespace_terminating(error) is not None:
                # Retries cannot succeed.
                return None
            self._event(turn.owner, "Warning", "FailedCreate", f"Error creating job: {error}")
            raise
        self._writes.note(key_of(turn.cron_job), JOBS, job)
        self._event(turn.owner, "Normal", "SuccessfulCreate", f"Created job {name}")
        return job

    async def _delete(self, turn: _Turn, name: str, uid: str) -> bool:
        """Delete a Job with its pods, and its reference. False if the server refuses, which is reported."""
        options = DeleteOptions(propagation_policy="Background", uid=uid)
        try:
            await self._client.delete(JOBS, name, turn.owner.namespace, options=options)
            self._event(turn.owner, "Normal", "SuccessfulDelete", f"Deleted job {name}")
        except (NotFoundError, ConflictError):
            # Gone already, or replaced by another of the same name.
            pass
        except ApiError as error:
            self._event(turn.owner, "Warning", "FailedDelete", f"Deleted job: {error}")
            return False
        turn.status = without_active(turn.status, uid)
        return True

    def _jobs_of(self, owner: Owner) -> list[Job]:
        return pods_of_owner(self._jobs.cache, owner)

    def _event(self, owner: Owner, type_: str, reason: str, message: str) -> None:
        self._recorder.event(owner.object_reference(), type_, reason, message)

    def _forget(self, key: Key) -> None:
        self._writes.forget(key)
        self._waits.pop(key, None)


def _owner(cron_job: CronJob) -> Owner:
    return owner_of(cron_job, CRON_JOBS)


def _is_active(status: Status, uid: str) -> bool:
    return any(each.get("uid") == uid for each in active_of(status))


def _versions(cron_job: CronJob, jobs: list[Job]) -> frozenset[str]:
    return frozenset(each.metadata.resource_version for each in (cron_job, *jobs))


def _schedule_of(cron_job: CronJob) -> Schedule:
    """Raises ValueError. A time zone within the schedule, which old objects may have, takes precedence."""
    spec = cron_job.spec
    return parse_schedule(spec.schedule, "" if "TZ" in spec.schedule else spec.time_zone or "")
