"""Jobs and CronJobs."""

from __future__ import annotations

from typing import Any

from podlife.api.codec import Object
from podlife.api.durations import human_duration
from podlife.apiserver.printers.cells import (
    age,
    condition_status,
    epoch,
    format_selector,
    names_and_images,
    since,
)
from podlife.apiserver.printers.columns import columns
from podlife.apiserver.resource import Printer


def _job(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec", {})
    return [
        obj["metadata"].get("name", ""),
        _job_status(obj),
        _completions(obj),
        _duration(obj, now),
        age(obj, now),
        *names_and_images(spec.get("template", {}).get("spec", {})),
        format_selector(spec.get("selector")),
    ]


def _job_status(obj: Object) -> str:
    def has(condition_type: str) -> bool:
        return condition_status(obj, condition_type) == "True"

    # Upstream's order: a final state outranks deletion, which outranks a state in progress.
    for finished in ("Complete", "Failed"):
        if has(finished):
            return finished
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for pending in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if has(pending):
            return pending
    return "Running"


def _completions(obj: Object) -> str:
    spec = obj.get("spec", {})
    succeeded = obj.get("status", {}).get("succeeded", 0)
    if "completions" in spec:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism", 0)
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: Object, now: float) -> str:
    status = obj.get("status", {})
    if "startTime" not in status:
        return ""
    end = epoch(status["completionTime"]) if "completionTime" in status else now
    return human_duration(end - epoch(status["startTime"]))


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    job_spec = spec.get("jobTemplate", {}).get("spec", {})
    last = status.get("lastScheduleTime")
    return [
        obj["metadata"].get("name", ""),
        spec.get("schedule", ""),
        spec.get("timeZone", "<none>"),
        _suspended(spec),
        len(status.get("active", ())),
        since(last, now) if last else "<none>",
        age(obj, now),
        *names_and_images(job_spec.get("template", {}).get("spec", {})),
        format_selector(job_spec.get("selector")),
    ]


def _suspended(spec: Object) -> str:
    # The column's type is boolean, yet kube-apiserver fills it with these words.
    return str(spec["suspend"]) if "suspend" in spec else "<unset>"


JOBS = Printer(columns("jobs.batch"), _job)
CRON_JOBS = Printer(columns("cronjobs.batch"), _cron_job)
