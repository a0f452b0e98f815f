"""CronJobs: which start is due, what becomes of the Jobs, and what is told about it.

No scenario waits for a time of the clock: a CronJob is made that starts once a year, and its status says that it
last did so more than a year ago. So one start has been missed, and the next is far away on any clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from podlife.api.codec import format_time
from podlife.client import CRON_JOBS, JOBS
from tests.workloads.node import Behaviour, exits
from tests.workloads.objects import Object, template
from tests.workloads.scenario import scenario
from tests.workloads.world import World

DONE = exits(0)
DAY = 86_400
SCHEDULE = {
    "CronJob.spec.schedule": "it is made from the time of the run",
    "CronJob.status.active.*.resourceVersion": "it counts all writes of the server",
}
RACE = {"Event.MissingJob": "upstream may read its cache of the Job before the delete arrives there"}
cron_scenario = partial(scenario, "cronjob", ignoring=SCHEDULE)
deleting_scenario = partial(scenario, "cronjob", ignoring={**SCHEDULE, **RACE})


def start_time(world: World, days: int = 40) -> datetime:
    """So many days ago, or some more, since not every month has a 29th."""
    found = (world.clock.now() - timedelta(days=days)).replace(second=0, microsecond=0)
    return found - timedelta(days=5) if found.day > 28 else found


def yearly(start: datetime) -> str:
    return f"{start.minute} {start.hour} {start.day} {start.month} *"


def cron_job(
    world: World, *, job: Object | None = None, metadata: Object | None = None, **spec: Any
) -> Object:
    made = {"backoffLimit": 0, "template": template("work", restartPolicy="Never"), **(job or {})}
    fields = {
        "schedule": yearly(start_time(world)),
        "suspend": True,
        "jobTemplate": {"metadata": {"labels": {"app": "work"}}, "spec": made},
        **spec,
    }
    return {"metadata": {"name": "work", **(metadata or {})}, "spec": fields}


async def miss_start(world: World, *, last_seconds_ago: float = 400 * DAY, **spec: Any) -> Object:
    """A CronJob that has missed a start, not suspended any more."""
    made = await world.create(CRON_JOBS, cron_job(world, **spec))
    last = format_time(world.clock.now() - timedelta(seconds=last_seconds_ago))
    await world.patch(CRON_JOBS, "work", {"status": {"lastScheduleTime": last}}, subresource="status")
    await world.patch(CRON_JOBS, "work", {"spec": {"suspend": False}})
    return made


async def start(world: World, *, behaviour: Behaviour | None = None, **spec: Any) -> Object:
    """The Job of the missed start; it runs unless another behaviour is given."""
    if behaviour is not None:
        world.node.let(behaviour)
    await miss_start(world, **spec)
    if behaviour is None:
        await world.until("a Job runs", lambda: [each for each in world.all(JOBS) if is_running(each)])
        await world.until_event("SuccessfulCreate")
        await world.until("it is active", lambda: len(active(world)) == 1)
    return world.all(JOBS)[0] if world.all(JOBS) else {}


async def become_due_again(world: World) -> None:
    """A new schedule alone starts nothing; with the next change its missed start is due."""
    await world.settle()
    await world.patch(CRON_JOBS, "work", {"spec": {"schedule": yearly(start_time(world, 10))}})
    await world.settle()
    await world.patch(CRON_JOBS, "work", {"metadata": {"annotations": {"touched": "yes"}}})


def active(world: World) -> list[Object]:
    return world.status(CRON_JOBS, "work").get("active") or []


def is_running(job: Object) -> bool:
    return bool((job.get("status") or {}).get("ready"))


def owned_job(cron_job: Object, name: str) -> Object:
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "work",
        "uid": cron_job["metadata"]["uid"],
        "controller": True,
    }
    spec = {"template": template("work", restartPolicy="Never")}
    return {"metadata": {"name": name, "ownerReferences": [reference]}, "spec": spec}


# Starts


@cron_scenario()
async def missed_start_is_made_up_for(world: World) -> None:
    await start(world)


@cron_scenario()
async def nothing_is_due(world: World) -> None:
    await world.create(CRON_JOBS, cron_job(world, suspend=False))


@cron_scenario()
async def suspended(world: World) -> None:
    await world.create(CRON_JOBS, cron_job(world))
    await world.patch(
        CRON_JOBS, "work", {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}, subresource="status"
    )


@cron_scenario()
async def a_hundred_starts_missed(world: World) -> None:
    """Only the last one is made up for."""
    at = world.clock.now() - timedelta(hours=2)
    daily = f"{at.minute} {at.hour} * * *"
    await start(world, schedule=daily, last_seconds_ago=200 * DAY)
    await world.until_event("TooManyMissedTimes")


@cron_scenario()
async def a_few_starts_missed(world: World) -> None:
    at = world.clock.now() - timedelta(hours=2)
    await start(world, schedule=f"{at.minute} {at.hour} * * *", last_seconds_ago=5 * DAY)


@cron_scenario()
async def too_late_for_its_deadline(world: World) -> None:
    await miss_start(world, startingDeadlineSeconds=100)


@cron_scenario()
async def within_its_deadline(world: World) -> None:
    await start(world, startingDeadlineSeconds=60 * DAY)


@cron_scenario()
async def every_so_often(world: World) -> None:
    """The delay counts from the last start."""
    await start(world, schedule="@every 2h", last_seconds_ago=3 * 3600)


@cron_scenario()
async def time_zone(world: World) -> None:
    await start(world, timeZone="Asia/Kolkata")


@cron_scenario()
async def names_and_steps(world: World) -> None:
    at = start_time(world)
    month = at.strftime("%b").upper()
    await start(world, schedule=f"{at.minute}-{at.minute}/5 {at.hour} {at.day} {month} ?")


@cron_scenario()
async def date_that_never_comes(world: World) -> None:
    await miss_start(world, schedule="0 0 31 2 *")
    await world.until_event("InvalidSchedule")


@cron_scenario()
async def last_start_in_the_future(world: World) -> None:
    """As after a clock was set back."""
    await miss_start(world, last_seconds_ago=-30 * DAY)


@cron_scenario()
async def schedule_changed(world: World) -> None:
    """What the new schedule would have missed is not started."""
    await world.create(CRON_JOBS, cron_job(world, suspend=False))
    await world.settle()
    await world.patch(CRON_JOBS, "work", {"spec": {"schedule": yearly(start_time(world, 20))}})


@cron_scenario()
async def template_with_metadata(world: World) -> None:
    labels, annotations = {"tier": "batch", "app": "work"}, {"example.com/note": "as the template says"}
    made = {"spec": {"template": template("work", restartPolicy="OnFailure"), "parallelism": 2}}
    await start(world, jobTemplate={"metadata": {"labels": labels, "annotations": annotations}, **made})


# Jobs and their ends


@cron_scenario()
async def job_completes(world: World) -> None:
    await start(world, behaviour=DONE)
    await world.until("it is recorded", lambda: world.status(CRON_JOBS, "work").get("lastSuccessfulTime"))
    await world.until_event("SawCompletedJob")


@cron_scenario()
async def job_fails(world: World) -> None:
    await start(world, behaviour=exits(1))
    await world.until_event("SawCompletedJob")


@cron_scenario()
async def suspended_while_a_job_runs(world: World) -> None:
    await start(world)
    await world.patch(CRON_JOBS, "work", {"spec": {"suspend": True}})
    world.node.let(DONE)
    await world.until_event("SawCompletedJob")


@cron_scenario()
async def active_job_deleted(world: World) -> None:
    job = await start(world)
    await world.delete(JOBS, job["metadata"]["name"])
    await world.until_event("MissingJob")


@cron_scenario()
async def active_job_that_never_was(world: World) -> None:
    await world.create(CRON_JOBS, cron_job(world, suspend=False))
    entry = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": world.namespace,
        "name": "ghost",
        "uid": "11111111-2222-3333-4444-555555555555",
    }
    await world.patch(CRON_JOBS, "work", {"status": {"active": [entry]}}, subresource="status")
    await world.until_event("MissingJob")


@cron_scenario()
async def job_that_it_did_not_start(world: World) -> None:
    made = await world.create(CRON_JOBS, cron_job(world, suspend=False))
    await world.create(JOBS, owned_job(made, "by-hand"))
    await world.until_event("UnexpectedJob")


@cron_scenario()
async def name_of_the_job_is_taken(world: World) -> None:
    minutes = int(start_time(world).timestamp()) // 60
    spec = {"template": template("work", restartPolicy="Never")}
    await world.create(JOBS, {"metadata": {"name": f"work-{minutes}"}, "spec": spec})
    await miss_start(world)


# Concurrency


@cron_scenario()
async def concurrent_jobs_allowed(world: World) -> None:
    await start(world)
    await become_due_again(world)
    await world.until("both are active", lambda: len(active(world)) == 2)


@cron_scenario()
async def concurrent_jobs_forbidden(world: World) -> None:
    await start(world, concurrencyPolicy="Forbid")
    await become_due_again(world)
    await world.until_event("JobAlreadyActive")


@deleting_scenario()
async def active_job_replaced(world: World) -> None:
    job = await start(world, concurrencyPolicy="Replace")
    await become_due_again(world)
    await world.until_gone(JOBS, job["metadata"]["name"])
    await world.until_event("SuccessfulCreate", times=2)
    await world.until("the new one is active", lambda: len(active(world)) == 1)


# History


@deleting_scenario()
async def no_history_of_successes(world: World) -> None:
    await start(world, behaviour=DONE, successfulJobsHistoryLimit=0)
    await world.until_event("SuccessfulDelete")
    await world.until("it is gone", lambda: not world.all(JOBS) and not world.pods())


@deleting_scenario()
async def no_history_of_failures(world: World) -> None:
    await start(world, behaviour=exits(1), failedJobsHistoryLimit=0)
    await world.until_event("SuccessfulDelete")
    await world.until("it is gone", lambda: not world.all(JOBS) and not world.pods())


@deleting_scenario()
async def history_limit_lowered(world: World) -> None:
    world.node.let(DONE)
    made = await world.create(CRON_JOBS, cron_job(world, successfulJobsHistoryLimit=5))
    for name in ("first", "second", "third"):
        await world.create(JOBS, owned_job(made, name))
        await world.until(f"{name} is done", lambda name=name: world.status(JOBS, name).get("completionTime"))
    await world.settle()
    await world.patch(CRON_JOBS, "work", {"spec": {"successfulJobsHistoryLimit": 1}})
    await world.until("one is kept", lambda: len(world.all(JOBS)) == 1)


# Deletion


@deleting_scenario()
async def deleted_in_the_background(world: World) -> None:
    await start(world)
    await world.delete(CRON_JOBS, "work", cascade="Background")
    await world.until("all is gone", lambda: not world.all(JOBS) and not world.pods())


@deleting_scenario()
async def deleted_in_the_foreground(world: World) -> None:
    await start(world)
    await world.delete(CRON_JOBS, "work", cascade="Foreground")
    await world.until_gone(CRON_JOBS, "work")


@cron_scenario()
async def deleted_without_its_jobs(world: World) -> None:
    await start(world)
    await world.delete(CRON_JOBS, "work", cascade="Orphan")
    await world.until_gone(CRON_JOBS, "work")


@cron_scenario()
async def held_by_a_finalizer(world: World) -> None:
    """Its Jobs are still followed, but none is started."""
    await start(world, metadata={"finalizers": ["example.com/hold"]})
    await world.delete(CRON_JOBS, "work", cascade="Orphan")
    await become_due_again(world)


@cron_scenario()
async def namespace_is_terminating(world: World) -> None:
    await world.create(CRON_JOBS, cron_job(world))
    await world.terminate_namespace()
    status = {"lastScheduleTime": format_time(world.clock.now() - timedelta(days=400))}
    await world.patch(CRON_JOBS, "work", {"status": status}, subresource="status")
    await world.patch(CRON_JOBS, "work", {"spec": {"suspend": False}})
