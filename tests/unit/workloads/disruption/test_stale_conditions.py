"""A mark that announces a deletion is taken off when the deletion does not come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from podlife.api.codec import format_time
from podlife.workloads.disruption.stale_conditions import reset_patch, time_until_stale
from podlife.workloads.views import WorkloadPod
from tests.kit import objects

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
READY = {"type": "Ready", "status": "True"}


def marked(seconds: int = 120, *, phase: str = "Running", **condition: Any) -> dict[str, Any]:
    mark = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": format_time(NOW - timedelta(seconds=seconds)),
        **condition,
    }
    metadata = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 3}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [mark, READY]}}


def seen(pod: dict[str, Any]) -> WorkloadPod:
    return msgspec.convert(pod, WorkloadPod)


def test_a_mark_of_two_minutes_is_stale() -> None:
    assert time_until_stale(seen(marked(120)), NOW) == timedelta(0)
    assert time_until_stale(seen(marked(50)), NOW) == timedelta(seconds=70)


def test_a_stale_mark_is_set_to_false_on_the_pod_that_was_read_and_no_other() -> None:
    reset = objects.condition(
        "DisruptionTarget", "False", lastTransitionTime=format_time(NOW), observedGeneration=3
    )
    assert reset_patch(marked(), NOW) == {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "status": {"conditions": [reset, READY]},
    }


@pytest.mark.parametrize(
    "pod",
    [
        marked(119),
        marked(status="False"),
        marked(reason="TerminationByKubelet"),
        marked(phase="Failed"),
        marked(phase="Succeeded"),
        marked() | {"metadata": {**marked()["metadata"], "deletionTimestamp": "2026-01-02T03:04:05Z"}},
        {**marked(), "status": {"phase": "Running"}},
    ],
)
def test_what_is_not_stale_is_left_alone(pod: dict[str, Any]) -> None:
    assert reset_patch(pod, NOW) is None


@pytest.mark.parametrize(
    "pod",
    [
        marked(status="False"),
        marked(phase="Failed"),
        marked() | {"metadata": {**marked()["metadata"], "deletionTimestamp": "2026-01-02T03:04:05Z"}},
    ],
)
def test_a_pod_that_is_going_or_at_its_end_is_not_waited_for(pod: dict[str, Any]) -> None:
    assert time_until_stale(seen(pod), NOW) is None
