"""How long a container that keeps ending has to wait."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from podlife.kubelet.kuberuntime.backoff import (
    BACK_OFF,
    CRASH_LOOP_BACK_OFF,
    Backoff,
    backoff_key,
    crash_loop,
    crash_loop_backoff,
    restart_count,
)
from tests.conformance.kubelet.kit import START, container, pod


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_waits_double_up_to_five_minutes() -> None:
    """RB-01"""
    backoff, now, waits = crash_loop_backoff(), START, []
    for _ in range(7):
        assert not backoff.is_waiting("k", now, now + timedelta(seconds=backoff.seconds("k")))
        now += timedelta(seconds=backoff.seconds("k"))
        backoff.record_retry("k", now, now)
        waits.append(backoff.seconds("k"))
    assert waits == [10, 20, 40, 80, 160, 300, 300]


def test_the_first_restart_is_immediate() -> None:
    """RB-01"""
    assert crash_loop(crash_loop_backoff(), pod(), container(), at(0), at(0)) is None


@pytest.mark.parametrize(("seconds", "is_waiting"), [(0, True), (9.9, True), (10, False), (60, False)])
def test_the_wait_counts_from_the_end_of_the_last_instance(seconds: float, is_waiting: bool) -> None:
    """RB-02"""
    backoff = crash_loop_backoff()
    backoff.record_retry("k", at(0), at(0))
    assert backoff.is_waiting("k", at(5), at(5 + seconds)) is is_waiting
    assert not backoff.is_waiting("other", at(5), at(5 + seconds))


def test_one_that_has_not_exited_does_not_wait() -> None:
    """RB-02"""
    backoff = crash_loop_backoff()
    assert crash_loop(backoff, pod(), container(), at(0), at(0)) is None
    assert crash_loop(backoff, pod(), container(), None, at(0)) is None
    assert crash_loop(backoff, pod(), container(), at(0), at(1)) is not None


@pytest.mark.parametrize(("finished", "wait"), [(600, 20), (600.1, 10)])
def test_ten_minutes_well_begin_anew(finished: float, wait: float) -> None:
    """RB-03"""
    backoff = crash_loop_backoff()
    backoff.record_retry("k", at(0), at(0))
    assert backoff.is_waiting("k", at(finished), at(finished)) is (wait == 20)
    backoff.record_retry("k", at(finished), at(finished + 30))
    assert backoff.seconds("k") == wait


def test_what_is_told_of_one_that_waits() -> None:
    """RB-04"""
    backoff = crash_loop_backoff()
    for seconds in (0, 100, 200, 300):
        crash_loop(backoff, pod(), container(), at(seconds), at(seconds + 90))
    waits = crash_loop(backoff, pod(), container(), at(400), at(410))
    assert waits is not None
    assert (BACK_OFF, waits.event) == ("BackOff", "Back-off restarting failed container a in pod p_ns(u)")
    assert (CRASH_LOOP_BACK_OFF, waits.message) == (
        "CrashLoopBackOff",
        "back-off 1m20s restarting failed container=a pod=p_ns(u)",
    )
    assert waits.until == at(480)


@pytest.mark.parametrize(
    ("change", "is_same"),
    [({"image": "new"}, False), ({"resources": {"limits": {"cpu": "1"}}}, False), ({"args": ["x"]}, True)],
)
def test_another_image_or_other_resources_start_afresh(change: dict[str, Any], is_same: bool) -> None:
    """RB-05"""
    before = backoff_key(pod(), container())
    assert (backoff_key(pod(), {**container(), **change}) == before) is is_same


@pytest.mark.parametrize("metadata", [{"name": "q"}, {"namespace": "other"}, {"uid": "v"}])
def test_another_pod_waits_by_itself(metadata: dict[str, str]) -> None:
    """RB-05"""
    assert backoff_key(pod(metadata=metadata), container()) != backoff_key(pod(), container())


@pytest.mark.parametrize(
    ("most", "initial", "expected"),
    [(2, 10, 2), (11, 10, 10), (300, 10, 10), (2, 1, 1), (10, 1, 1), (300, 1, 1)],
)
def test_a_low_bound_lowers_the_first_wait(most: float, initial: float, expected: float) -> None:
    """RB-06"""
    backoff = crash_loop_backoff(most, initial_seconds=initial)
    backoff.record_retry("k", at(0), at(0))
    assert backoff.seconds("k") == expected
    for _ in range(12):
        backoff.record_retry("k", at(0), at(0))
    assert backoff.seconds("k") == most


def test_any_backoff() -> None:
    """RB-07"""
    backoff = Backoff(initial_seconds=1, max_seconds=50)
    waits = []
    for second in range(9):
        waits.append(backoff.seconds("k"))
        backoff.record_retry("k", at(second), at(second))
    assert waits == [0, 1, 2, 4, 8, 16, 32, 50, 50]


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        pytest.param(Backoff(initial_seconds=1, max_seconds=50), 100, id="RB-07 after twice the bound"),
        pytest.param(crash_loop_backoff(), 600, id="RB-08 of containers after ten minutes"),
    ],
)
def test_what_has_expired_is_collected(backoff: Backoff, seconds: float) -> None:
    backoff.record_retry("k", at(0), at(0))
    backoff.collect(at(seconds))
    assert len(backoff) == 1
    backoff.collect(at(seconds + 0.5))
    assert len(backoff) == 0


@pytest.mark.parametrize(
    ("last", "logs", "expected"),
    [
        (None, [], 0),
        (4, ["9.log"], 5),
        (None, ["0.log", "2.log", "1.log"], 3),
        (None, ["3.log.20300101-000000.gz", "2.log", "other", "7.txt"], 4),
    ],
)
def test_the_restart_count_is_guessed_from_logs_where_the_runtime_knows_none(
    last: int | None, logs: list[str], expected: int
) -> None:
    """RB-09"""
    assert restart_count(last, logs) == expected
