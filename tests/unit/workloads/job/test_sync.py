"""When a Job is looked at again by itself."""

from __future__ import annotations

import pytest

from podlife.workloads.job.status import Activity
from podlife.workloads.job.sync import _next_sync, _Step
from tests.unit.workloads.job.made import ago, context, job


@pytest.mark.parametrize(
    ("started_ago", "seconds"),
    [
        (90, 10),
        (99, 1),
        # It has been judged, and waits for news of its pods: at once, again and again, would stop everything else.
        (100, 1),
        (5000, 1),
    ],
)
def test_deadline_is_waited_for_and_what_is_past_it_is_not_looked_at_without_pause(
    started_ago: int, seconds: float
) -> None:
    late = context(job({"startTime": ago(started_ago)}, activeDeadlineSeconds=100))
    step = _Step(late.job.status, Activity(0, 0, 0))
    again = _next_sync(late, step, is_whole=True)
    assert again is not None
    assert again.seconds == seconds
