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
