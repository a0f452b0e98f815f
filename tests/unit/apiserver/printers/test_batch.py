from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.printers import CRON_JOBS, JOBS

from .situation import ANY_AGE, NOW, Situation, at, named, with_any_age

LABELS = {"app": "sum"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "sum", "image": "python"}]},
}
JOB_SPEC = {"template": TEMPLATE, "selector": {"matchLabels": LABELS}, "manualSelector": True}
WIDE = ["sum", "python", "app=sum"]


def job(
    name: str, cells: list[str], status: dict[str, Any], *, deleting: bool = False, **spec: Any
) -> Situation:
    obj = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": named(name, deleting=deleting),
        "spec": {**JOB_SPEC, **spec},
        "status": status,
    }
    return Situation(name, obj, [name, *cells, ANY_AGE, *WIDE])


def having(*conditions: str, now: float, **status: Any) -> dict[str, Any]:
    found = [{"type": each, "status": "True", "lastTransitionTime": at(now)} for each in conditions]
    return {"conditions": found, **status}


def jobs(now: float) -> list[Situation]:
    started = {"startTime": at(now - 3700)}
    complete = having("SuccessCriteriaMet", "Complete", now=now, **started, succeeded=1) | {
        "completionTime": at(now - 3550)
    }
    return [
        job("new", ["Running", "0/1", ""], {}, completions=1),
        job("running", ["Running", "1/3", "61m"], {**started, "succeeded": 1}, completions=3, parallelism=2),
        job("complete", ["Complete", "1/1", "2m30s"], complete, completions=1),
        job(
            "failed",
            ["Failed", "0/1", "61m"],
            having("FailureTarget", "Failed", now=now, **started),
            completions=1,
        ),
        job("suspended", ["Suspended", "0/1", ""], having("Suspended", now=now), completions=1, suspend=True),
        job(
            "failing",
            ["FailureTarget", "0/1", "61m"],
            having("FailureTarget", now=now, **started),
            completions=1,
        ),
        job(
            "succeeding",
            ["SuccessCriteriaMet", "1/1", "61m"],
            having("SuccessCriteriaMet", now=now, **started, succeeded=1),
            completions=1,
        ),
        job("deleted", ["Terminating", "0/1", "61m"], started, deleting=True, completions=1),
        job("queue", ["Running", "0/1 of 4", "61m"], started, parallelism=4),
        job("single", ["Running", "0/1", "61m"], started, parallelism=1),
    ]


def cron_jobs(now: float) -> list[Situation]:
    def of(name: str, cells: list[Any], status: dict[str, Any], **spec: Any) -> Situation:
        obj = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": named(name),
            "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}, **spec},
            "status": status,
        }
        return Situation(name, obj, [name, "*/5 * * * *", *cells, ANY_AGE, "sum", "python", "<none>"])

    active = [{"kind": "Job", "name": "a"}, {"kind": "Job", "name": "b"}]
    return [
        of("waiting", ["<none>", "False", 0, "<none>"], {}, suspend=False),
        of(
            "busy",
            ["Europe/Zurich", "True", 2, "3h20m"],
            {"active": active, "lastScheduleTime": at(now - 12000)},
            suspend=True,
            timeZone="Europe/Zurich",
        ),
    ]


@pytest.mark.parametrize("case", jobs(NOW), ids=lambda case: case.name)
def test_job_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert with_any_age(JOBS.cells(case.obj, NOW), JOBS.columns) == case.cells


@pytest.mark.parametrize("case", cron_jobs(NOW), ids=lambda case: case.name)
def test_cron_job_is_shown_as_the_real_server_shows_it(case: Situation) -> None:
    assert with_any_age(CRON_JOBS.cells(case.obj, NOW), CRON_JOBS.columns) == case.cells
