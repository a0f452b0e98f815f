"""The Jobs of a CronJob: which of them are active, which are history, and how one is made. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from podlife.api.codec import Object
from podlife.api.cron import load_zone
from podlife.podcontrol import Owner
from podlife.workloads.cronjob.views import CronJob
from podlife.workloads.job.views import Job, start_time
from podlife.workloads.status import has_condition
from podlife.workloads.views import Status

_SCHEDULED_TIMESTAMP = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def finished_condition(job: Job) -> str:
    """Complete, Failed, or empty for a Job that has not finished."""
    conditions = job.status.get("conditions")
    return next((each for each in ("Complete", "Failed") if has_condition(conditions, each)), "")


def history_beyond_limits(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """The oldest finished Jobs, of which more are kept than the limits allow."""
    limits = {
        "Complete": cron_job.spec.successful_jobs_history_limit,
        "Failed": cron_job.spec.failed_jobs_history_limit,
    }
    finished = sorted(
        jobs, key=lambda job: (start_time(job.status) or datetime.max.replace(tzinfo=UTC), job.metadata.name)
    )
    surplus: list[Job] = []
    for condition, limit in limits.items():
        found = [job for job in finished if finished_condition(job) == condition]
        if limit is not None and len(found) > limit:
            surplus += found[: len(found) - limit]
    return surplus


def job_name(cron_job: CronJob, scheduled: datetime) -> str:
    """The same for the same start time, so that no Job is started twice."""
    return f"{cron_job.metadata.name}-{int(scheduled.timestamp()) // 60}"


def job_from_template(cron_job: CronJob, owner: Owner, scheduled: datetime) -> Object:
    template = cron_job.spec.job_template
    metadata = template.get("metadata") or {}
    local = scheduled.astimezone(load_zone(cron_job.spec.time_zone or ""))
    timestamp = local.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "metadata": {
            "name": job_name(cron_job, scheduled),
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**(metadata.get("annotations") or {}), _SCHEDULED_TIMESTAMP: timestamp},
            "ownerReferences": [owner.controller_ref().to_object()],
        },
        "spec": template.get("spec") or {},
    }


def reference_to(job: Object) -> Object:
    """An entry of `status.active`."""
    metadata = job["metadata"]
    return {
        "kind": "Job",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": metadata["resourceVersion"],
    }


def without_active(status: Status, uid: str) -> Status:
    active = [each for each in active_of(status) if each.get("uid") != uid]
    rest = {name: value for name, value in status.items() if name != "active"}
    return {**rest, "active": active} if active else rest


def active_of(status: Status) -> Sequence[Object]:
    return status.get("active") or ()


def with_success(status: Status, job: Job) -> Status:
    """With the completion time of a Job that has succeeded, if it is the latest one."""
    done = job.status.get("completionTime")
    known = status.get("lastSuccessfulTime")
    # The server writes all times in one form.
    if not done or (known and done <= known):
        return status
    return {**status, "lastSuccessfulTime": done}
