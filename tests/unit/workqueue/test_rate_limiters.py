"""How long a key waits before it is tried again."""

from __future__ import annotations

import asyncio

import pytest

from podlife.testing import virtual_time
from podlife.workqueue import BucketLimiter, ExponentialLimiter, LongestLimiter, RateLimitedQueue, TokenBucket


def test_exponential_doubles_for_each_key_by_itself_up_to_its_bound() -> None:
    limiter: ExponentialLimiter[str] = ExponentialLimiter(0.001, 1.0)
    assert [limiter.delay_seconds("one") for _ in range(5)] == [0.001, 0.002, 0.004, 0.008, 0.016]
    assert limiter.retries("one") == 5
    assert limiter.delay_seconds("two") == 0.001
    for _ in range(10):
        last = limiter.delay_seconds("one")
    assert last == 1.0


def test_exponential_starts_again_for_a_key_that_was_forgotten() -> None:
    limiter: ExponentialLimiter[str] = ExponentialLimiter(0.001, 1.0)
    for _ in range(4):
        limiter.delay_seconds("one")
    limiter.forget("one")
    limiter.forget("never seen")
    assert limiter.retries("one") == 0
    assert limiter.delay_seconds("one") == 0.001


def test_exponential_bears_any_number_of_failures() -> None:
    limiter: ExponentialLimiter[str] = ExponentialLimiter()
    assert [limiter.delay_seconds("one") for _ in range(3000)][-1] == 1000.0


@virtual_time
async def test_bucket_lets_a_burst_through_and_then_one_after_the_other_whatever_the_key() -> None:
    limiter: BucketLimiter[str] = BucketLimiter(per_second=2, burst=3)
    assert [limiter.delay_seconds(key) for key in "abcde"] == [0, 0, 0, 0.5, 1.0]
    await asyncio.sleep(1)
    assert limiter.delay_seconds("f") == 0.5
    await asyncio.sleep(100)
    assert [limiter.delay_seconds(key) for key in "abcd"] == [0, 0, 0, 0.5]
    assert limiter.retries("a") == 0
    limiter.forget("a")


@virtual_time
async def test_the_longest_of_several_counts_and_all_of_them_learn() -> None:
    limiter = LongestLimiter(ExponentialLimiter[str](1, 100), BucketLimiter[str](per_second=0.1, burst=3))
    assert [limiter.delay_seconds("a") for _ in range(5)] == [1, 2, 4, 10, 20]
    assert limiter.retries("a") == 5
    limiter.forget("a")
    assert limiter.retries("a") == 0
    assert limiter.delay_seconds("a") == 30


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_never_gives_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        TokenBucket(per_second, burst)


def test_a_bucket_is_not_emptied_or_filled_by_a_clock_that_is_turned_back() -> None:
    bucket = TokenBucket(1, 2)
    assert [bucket.take(100), bucket.take(50), bucket.take(50)] == [True, True, False]
    assert [bucket.take(50.5), bucket.take(51)] == [False, True]


@virtual_time
async def test_without_a_limiter_keys_back_off_each_and_all_together() -> None:
    queue: RateLimitedQueue[int] = RateLimitedQueue()
    loop = asyncio.get_running_loop()
    for key in range(200):
        queue.add_rate_limited(key)
    for _ in range(100):
        await queue.get()
    assert loop.time() == pytest.approx(0.005)
    for _ in range(100):
        await queue.get()
    assert loop.time() == pytest.approx(10)
