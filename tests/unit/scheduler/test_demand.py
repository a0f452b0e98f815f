"""What counts as the requests of a pod while it is resized."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podlife.scheduler.demand import demand_of
from podlife.scheduler.views import SchedulerPod


def resized(wanted: str, allocated: str, actual: str, reason: str = "") -> SchedulerPod:
    def container(**fields: Any) -> dict[str, Any]:
        return {"name": "main", **fields}

    status: dict[str, Any] = {
        "containerStatuses": [
            container(resources={"requests": {"cpu": actual}}, allocatedResources={"cpu": allocated})
        ]
    }
    if reason:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    spec = {"containers": [container(resources={"requests": {"cpu": wanted, "memory": "1Ki"}})]}
    pod = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": spec, "status": status}
    return msgspec.convert(pod, SchedulerPod)


@pytest.mark.parametrize(
    ("pod", "cpu"),
    [
        (resized("1", "1", "1"), 1000),
        (resized("2", "1", "1"), 2000),
        (resized("1", "2", "1"), 2000),
        (resized("1", "1", "1500m"), 1500),
        (resized("2", "1", "1", "Deferred"), 2000),
        (resized("2", "1", "1", "Infeasible"), 1000),
    ],
)
def test_the_largest_of_what_is_wanted_allocated_and_set_counts(pod: SchedulerPod, cpu: int) -> None:
    assert demand_of(pod).requests["cpu"] == cpu
