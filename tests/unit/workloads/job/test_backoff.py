from __future__ import annotations

from datetime import timedelta

import pytest

from podlife.workloads.job.pods import PodBackoff, wait_of_index
from podlife.workloads.views import WorkloadPod
from tests.unit.workloads.job.made import NOW, ended, pod


def failed(seconds_ago: float, failures: int | None = None) -> WorkloadPod:
    return pod("Failed", containerStatuses=[ended(1, seconds_ago)], index=0, failures=failures)


def succeeded(seconds_ago: float) -> WorkloadPod:
    return pod("Succeeded", containerStatuses=[ended(0, seconds_ago)])


def at(seconds_ago: float) -> object:
    return NOW - timedelta(seconds=seconds_ago)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (8, 600), (10**6, 600)]
)
def test_wait_doubles_from_ten_seconds_to_ten_minutes(failures: int, seconds: float) -> None:
    assert PodBackoff(failures, NOW if failures else None).wait(NOW) == timedelta(seconds=seconds)


def test_time_since_the_last_failure_is_part_of_the_wait() -> None:
    assert PodBackoff(1, NOW - timedelta(seconds=4)).wait(NOW) == timedelta(seconds=6)
    assert PodBackoff(1, NOW - timedelta(seconds=11)).wait(NOW) == timedelta(0)


@pytest.mark.parametrize(
    ("ends", "failures", "last"),
    [
        (((), ()), 2, 50),
        (((), (5, 9)), 4, 5),
        # A success ends the row.
        (((7,), ()), 0, None),
        (((7,), (9, 8)), 0, None),
        (((7,), (9, 5, 3)), 2, 3),
        (((9, 4), (5, 3)), 1, 3),
        # At the same moment the success is the later one.
        (((5,), (5,)), 0, None),
    ],
)
def test_failures_are_counted_since_the_last_success(
    ends: tuple[tuple[int, ...], tuple[int, ...]], failures: int, last: float | None
) -> None:
    before = PodBackoff(2, NOW - timedelta(seconds=50))
    after = before.after([succeeded(each) for each in ends[0]], [failed(each) for each in ends[1]])
    assert (after.failures, after.last_failure) == (failures, None if last is None else at(last))


def test_index_waits_by_its_own_failures() -> None:
    assert wait_of_index(None, NOW) == timedelta(0)
    assert wait_of_index(failed(0), NOW) == timedelta(seconds=10)
    assert wait_of_index(failed(5, failures=2), NOW) == timedelta(seconds=35)
