"""Who is next, and who waits for what."""

from __future__ import annotations

from podlife.scheduler.scheduling_queue import SchedulingQueue
from tests.unit.scheduler.objects import pod


def names(waiting: SchedulingQueue, now: float) -> list[str]:
    found = []
    while (one := waiting.next(now)) is not None:
        found.append(one.metadata.name)
    return found


def test_priority_goes_before_age_and_name() -> None:
    waiting = SchedulingQueue()
    for one in (pod("b"), pod("a"), pod("z", priority=5)):
        waiting.put(one, 0)
    assert names(waiting, 0) == ["z", "a", "b"]


def test_one_that_fits_nowhere_waits_for_help_and_no_less_than_its_backoff() -> None:
    waiting, one = SchedulingQueue(), pod("a")
    waiting.put(one, 0)
    assert names(waiting, 0) == ["a"]
    waiting.failed(one.metadata.uid, 0, is_waiting=True)
    assert names(waiting, 50) == []
    waiting.activate_unschedulable(0.2)
    assert names(waiting, 0.9) == []
    assert waiting.next_time() == 1.0
    assert names(waiting, 1.0) == ["a"]
    waiting.failed(one.metadata.uid, 1.0, is_waiting=True)
    waiting.activate_unschedulable(1.5)
    assert waiting.next_time() == 3.0


def test_what_never_happens_is_not_waited_for_longer_than_five_minutes() -> None:
    waiting, one = SchedulingQueue(), pod("a")
    waiting.put(one, 0)
    waiting.next(0)
    waiting.failed(one.metadata.uid, 0, is_waiting=True)
    assert names(waiting, 299) == []
    assert names(waiting, 300) == ["a"]


def test_a_failure_that_is_nobodys_fault_is_tried_again_with_a_growing_wait_of_ten_seconds_at_most() -> None:
    waiting, one = SchedulingQueue(), pod("a")
    waiting.put(one, 0)
    waits, now = [], 0.0
    for _ in range(6):
        assert waiting.next(now) is not None
        waiting.failed(one.metadata.uid, now, is_waiting=False)
        due = waiting.next_time()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [1, 2, 4, 8, 10, 10]


def test_one_that_is_gone_or_came_twice_is_tried_once_or_not_at_all() -> None:
    waiting, one, two = SchedulingQueue(), pod("a"), pod("b")
    waiting.put(one, 0)
    waiting.put(one, 0)
    waiting.put(two, 0)
    waiting.remove(two.metadata.uid)
    assert names(waiting, 0) == ["a"]
    assert len(waiting) == 1
