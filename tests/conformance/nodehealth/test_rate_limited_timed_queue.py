"""RQ-01 to RQ-07: the queue of nodes that wait for the taint that evicts."""

from __future__ import annotations

from podlife.nodehealth.rate_limited_timed_queue import RateLimitedTimedQueue

FAST = 1000.0


def full(*names: str, rate: float = FAST) -> RateLimitedTimedQueue:
    queue = RateLimitedTimedQueue(rate)
    for number, name in enumerate(names):
        assert queue.add(name, number / 1000)
    return queue


def drain(queue: RateLimitedTimedQueue, now: float) -> list[str]:
    """As fast as the rate allows, a hundredth of a second apart."""
    taken = []
    while (name := queue.take(now)) is not None:
        taken.append(name)
        now += 0.01
    return taken


def test_what_is_known_is_not_added_again_even_after_its_turn() -> None:
    """RQ-01: until it is removed."""
    queue = full("a")
    assert not queue.add("a", 1)
    assert drain(queue, 1) == ["a"]
    assert not queue.add("a", 2)
    assert (len(queue), "a" in queue) == (0, True)
    assert queue.remove("a")
    assert queue.add("a", 3)
    assert drain(queue, 3) == ["a"]


def test_what_is_removed_is_gone_and_the_others_keep_their_order() -> None:
    """RQ-02."""
    for gone in ("a", "b", "c"):
        queue = full("a", "b", "c")
        assert queue.remove(gone)
        assert not queue.remove(gone)
        assert drain(queue, 1) == [each for each in ("a", "b", "c") if each != gone]


def test_a_success_waits_no_longer_and_a_failure_comes_again_at_its_time() -> None:
    """RQ-03."""
    queue = full("a")
    assert queue.take(1) == "a"
    assert queue.take(2) is None
    queue.retry("a", 5)
    assert queue.take(4.9) is None
    assert queue.take(5) == "a"


def test_one_that_fails_lets_the_next_one_go_first() -> None:
    """RQ-04: first, second (in vain), third, and then the second once more."""
    queue = full("first", "second", "third")
    assert queue.take(1) == "first"
    assert queue.take(1.01) == "second"
    queue.retry("second", 1.01 + 0.002)
    assert queue.take(1.012) == "third"
    assert queue.take(1.02) == "second"


def test_one_that_was_removed_during_its_turn_is_not_tried_again() -> None:
    """RQ-05."""
    queue = full("a")
    assert queue.take(1) == "a"
    queue.remove("a")
    queue.retry("a", 1)
    assert (queue.take(2), len(queue), "a" in queue) == (None, 0, False)


def test_one_that_is_not_due_takes_nobodys_turn() -> None:
    """RQ-06, otherwise than upstream: there it burns the turn, and the next node waits ten seconds more."""
    queue = RateLimitedTimedQueue(0.1)
    queue.add("later", 5)
    assert queue.take(1) is None
    queue.add("now", 1)
    assert queue.take(1) == "now"


def test_the_same_rate_keeps_the_turns_none_lets_nobody_through_and_clearing_empties() -> None:
    """RQ-07."""
    queue = full("a", "b", rate=0.1)
    assert queue.take(1) == "a"
    queue.set_rate(0.1, 1)
    assert queue.take(1) is None
    queue.set_rate(0, 1)
    assert queue.take(10_000) is None
    queue.clear()
    assert (len(queue), "b" in queue) == (0, False)
    assert queue.add("b", 10_000)


def test_another_rate_gives_no_turn_that_there_was_none_for() -> None:
    """NL-77."""
    queue = full("a", "b", rate=0.1)
    assert queue.take(1) == "a"
    queue.set_rate(1, 1)
    assert queue.take(1.5) is None
    assert queue.take(2.1) == "b"
    unused = full("a", rate=0.1)
    unused.set_rate(1, 1)
    assert unused.take(1) == "a"
    stopped = full("a", rate=0)
    stopped.set_rate(0.1, 1)
    assert stopped.take(10.9) is None
    assert stopped.take(11.1) == "a"
