"""Expectations: what is counted, when they are satisfied, and when they end by themselves."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from podlife.podcontrol import INITIAL_BATCH, Expectation, Expectations, UidTrackedExpectations, slow_start

KEY = ("default", "web")


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def expectations(time: Time) -> Expectations:
    return Expectations(seconds=time)


@pytest.fixture
def tracked(time: Time) -> UidTrackedExpectations:
    return UidTrackedExpectations(seconds=time)


def counts(expectations: Expectations | UidTrackedExpectations) -> tuple[int, int]:
    known = expectations.get(KEY)
    assert known is not None
    return known.creations, known.deletions


def test_setting_replaces_what_was_there_and_starts_the_clock_again(
    expectations: Expectations, time: Time
) -> None:
    """EX-01."""
    expectations.expect(KEY, creations=1, deletions=2)
    assert expectations.get(KEY) == Expectation(1, 2, 1000.0)
    time.seconds += 299
    expectations.expect(KEY, creations=3)
    assert expectations.get(KEY) == Expectation(3, 0, 1299.0)
    time.seconds += 299
    assert not expectations.is_satisfied(KEY)


def test_creations_and_deletions_wipe_each_other(expectations: Expectations) -> None:
    """EX-02."""
    expectations.expect_creations(KEY, 3)
    assert counts(expectations) == (3, 0)
    expectations.expect_deletions(KEY, 2)
    assert counts(expectations) == (0, 2)
    expectations.expect_creations(KEY, 1)
    assert counts(expectations) == (1, 0)


def test_counts_may_fall_below_zero_and_are_satisfied(expectations: Expectations) -> None:
    """EX-03, EX-04."""
    expectations.expect_creations(KEY, 10)
    for _ in range(10):
        assert not expectations.is_satisfied(KEY)
        expectations.observe_creation(KEY)
    assert expectations.is_satisfied(KEY)
    expectations.observe_creation(KEY)
    assert counts(expectations) == (-1, 0)
    assert expectations.is_satisfied(KEY)


def test_both_counts_have_to_be_met(expectations: Expectations) -> None:
    """EX-04, EX-05."""
    expectations.expect(KEY, creations=10, deletions=30)
    for _ in range(11):
        expectations.observe_creation(KEY)
    assert not expectations.is_satisfied(KEY)
    for _ in range(31):
        expectations.observe_deletion(KEY)
    assert counts(expectations) == (-1, -1)
    assert expectations.is_satisfied(KEY)


def test_expectations_that_are_not_met_end_after_five_minutes(expectations: Expectations, time: Time) -> None:
    """EX-06, EX-07."""
    expectations.expect(KEY, creations=1, deletions=2)
    assert not expectations.is_satisfied(KEY)
    time.seconds += 300
    assert not expectations.is_satisfied(KEY), "five minutes exactly are not more than five minutes"
    time.seconds += 0.001
    assert expectations.is_satisfied(KEY)
    assert counts(expectations) == (1, 2), "they are satisfied, but still there"


def test_key_of_which_nothing_is_known_is_satisfied(
    expectations: Expectations, tracked: UidTrackedExpectations
) -> None:
    """EX-08."""
    assert expectations.is_satisfied(KEY)
    assert tracked.is_satisfied(KEY)


def test_raising_and_observing_an_unknown_key_does_nothing(expectations: Expectations) -> None:
    """EX-09."""
    expectations.add(KEY, creations=1)
    expectations.add(KEY, creations=-1)
    expectations.observe_creation(KEY)
    expectations.observe_deletion(KEY)
    assert expectations.get(KEY) is None


def test_raising_does_not_start_the_clock_again(expectations: Expectations, time: Time) -> None:
    """EX-09."""
    expectations.expect_creations(KEY, 1)
    time.seconds += 200
    expectations.add(KEY, creations=2, deletions=4)
    assert expectations.get(KEY) == Expectation(3, 4, 1000.0)


def test_observers_in_many_threads_lose_no_count(expectations: Expectations) -> None:
    """EX-10."""
    threads, times = 24, 500
    expectations.expect(KEY, creations=threads * times, deletions=threads * times)

    def observe(_: int) -> None:
        for _ in range(times):
            expectations.observe_creation(KEY)
            expectations.observe_deletion(KEY)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(observe, range(threads)))
    assert counts(expectations) == (0, 0)


def test_owners_of_two_kinds_have_the_same_key_and_need_two_stores(time: Time) -> None:
    """EX-11."""
    replica_sets, jobs = Expectations(seconds=time), Expectations(seconds=time)
    replica_sets.expect_creations(KEY, 1)
    assert jobs.is_satisfied(KEY)
    assert not replica_sets.is_satisfied(KEY)


async def test_slow_start_begins_with_one_and_doubles() -> None:
    """EX-12."""
    sizes = []
    running = 0

    async def act() -> None:
        nonlocal running
        running += 1
        sizes.append(running)
        await asyncio.sleep(0)
        running -= 1

    assert INITIAL_BATCH == 1
    result = await slow_start(10, act)
    assert (result.succeeded, result.skipped, result.errors) == (10, 0, ())
    batches = [[1], [1, 2], [1, 2, 3, 4], [1, 2, 3]]
    assert sizes == list(itertools.chain(*batches))


def test_each_of_the_distinct_pods_is_expected_to_go_once(tracked: UidTrackedExpectations) -> None:
    """EX-20."""
    tracked.expect_deletions(KEY, ["a", "b", "b"])
    assert counts(tracked) == (0, 2)
    tracked.observe_deletion(KEY, "a")
    assert not tracked.is_satisfied(KEY)
    tracked.observe_deletion(KEY, "b")
    assert tracked.is_satisfied(KEY)


def test_pod_that_is_seen_to_go_twice_counts_once(tracked: UidTrackedExpectations) -> None:
    """EX-21."""
    tracked.expect_deletions(KEY, ["a", "b"])
    for uid in ("a", "a", "stranger"):
        tracked.observe_deletion(KEY, uid)
    assert counts(tracked) == (0, 1)
    assert tracked.uids(KEY) == frozenset("b")
    tracked.observe_deletion(("default", "unknown"), "a")


def test_expecting_again_while_pods_are_pending_is_an_error_in_the_log(
    tracked: UidTrackedExpectations, caplog: pytest.LogCaptureFixture
) -> None:
    """EX-22."""
    tracked.expect_deletions(KEY, ["a"])
    assert not caplog.records
    tracked.expect_deletions(KEY, ["b", "c"])
    assert [(each.levelno, "['a']" in each.message) for each in caplog.records] == [(logging.ERROR, True)]
    assert tracked.uids(KEY) == frozenset("bc")
    assert counts(tracked) == (0, 2)


def test_forgetting_drops_the_pods_too(tracked: UidTrackedExpectations) -> None:
    """EX-23."""
    tracked.expect_deletions(KEY, ["a"])
    tracked.forget(KEY)
    assert tracked.get(KEY) is None
    assert tracked.uids(KEY) is None
    assert tracked.is_satisfied(KEY)


@pytest.mark.parametrize("seed", range(5))
def test_controllers_do_not_influence_each_other(tracked: UidTrackedExpectations, seed: int) -> None:
    """EX-24."""
    # Of five pods each, so many stay.
    keys = {("default", f"rs-{replicas}"): 5 - replicas for replicas in (0, 1, 2, 5)}
    ends = [(key, f"{key[1]}-{number}") for key, gone in keys.items() for number in range(gone)]
    for key in keys:
        tracked.expect_deletions(key, [uid for owner, uid in ends if owner == key])
    random.Random(seed).shuffle(ends)
    for seen, (key, uid) in enumerate(ends):
        assert not tracked.is_satisfied(key)
        tracked.observe_deletion(key, uid)
        left = {owner for owner, _ in ends[seen + 1 :]}
        assert {each for each in keys if not tracked.is_satisfied(each)} == left
