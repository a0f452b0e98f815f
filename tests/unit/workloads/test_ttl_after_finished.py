from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podlife.workloads.ttl_after_finished import time_to_live
from tests.unit.workloads.job.made import NOW, ago, job


def finished(type_: str = "Complete", status: str = "True", **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status, "lastTransitionTime": ago(10), **more}]}


@pytest.mark.parametrize(
    ("ttl", "status", "left"),
    [
        (30, finished(), 20),
        (30, finished("Failed"), 20),
        (0, finished(), -10),
        (None, finished(), None),
        (30, {}, None),
        (30, finished("Suspended"), None),
        (30, finished(status="False"), None),
        # What it would be counted from is not there.
        (30, finished(lastTransitionTime=None), None),
        # A server takes years that no date here has: nobody can say when it is due.
        (30, finished(lastTransitionTime="0000-01-01T00:00:00Z"), None),
        (30, finished(lastTransitionTime="10000-01-01T00:00:00Z"), None),
    ],
)
def test_time_to_live_runs_from_the_end_of_the_job(
    ttl: int | None, status: dict[str, Any], left: float | None
) -> None:
    made = job(status, ttlSecondsAfterFinished=ttl)
    assert time_to_live(made, NOW) == (None if left is None else timedelta(seconds=left))


def test_job_that_is_on_its_way_out_needs_no_delete() -> None:
    made = job(finished(), {"deletionTimestamp": ago(1)}, ttlSecondsAfterFinished=0)
    assert time_to_live(made, NOW) is None


def test_job_that_ends_with_the_last_of_all_days_is_not_due() -> None:
    """An error here would end the informer of Jobs, and everything with it."""
    left = time_to_live(
        job(finished(lastTransitionTime="9999-12-31T23:59:59Z"), ttlSecondsAfterFinished=2**31 - 1), NOW
    )
    assert left is not None
    assert left > timedelta(days=7000 * 365)
