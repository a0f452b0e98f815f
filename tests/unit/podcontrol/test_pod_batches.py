"""Several pods at once: what is expected is what was asked for and did not fail."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from podlife.errors import ConflictError, ForbiddenError, NotFoundError
from podlife.podcontrol import OwnedPod, UidTrackedExpectations, create_expected, delete_expected, slow_start

KEY = ("default", "web")


def pods(*uids: str) -> list[OwnedPod]:
    return [msgspec.convert({"metadata": {"name": f"pod-{uid}", "uid": uid}}, OwnedPod) for uid in uids]


async def test_all_that_were_created_are_expected() -> None:
    expectations = UidTrackedExpectations()
    created = 0

    async def create() -> None:
        nonlocal created
        created += 1

    await create_expected(expectations, KEY, 7, create)
    known = expectations.get(KEY)
    assert known is not None
    assert (created, known.creations, known.deletions) == (7, 7, 0)


async def test_what_failed_and_what_was_not_tried_after_it_is_not_expected() -> None:
    expectations = UidTrackedExpectations()
    tries = 0

    async def create() -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            raise ConflictError("no")

    with pytest.raises(ConflictError):
        await create_expected(expectations, KEY, 100, create)
    known = expectations.get(KEY)
    assert known is not None
    assert (tries, known.creations) == (3, 2)


async def test_deletions_that_failed_are_not_expected_and_all_are_tried() -> None:
    expectations = UidTrackedExpectations()
    tried: list[str] = []

    async def delete(pod: OwnedPod) -> None:
        tried.append(pod.metadata.uid)
        if pod.metadata.uid == "2":
            raise ConflictError("no")

    with pytest.raises(ConflictError):
        await delete_expected(expectations, KEY, pods("1", "2", "3"), delete)
    assert tried == ["1", "2", "3"]
    assert expectations.uids(KEY) == frozenset("13")


async def test_a_pod_that_is_gone_already_is_no_failure_and_not_expected() -> None:
    expectations = UidTrackedExpectations()

    async def delete(pod: OwnedPod) -> None:
        raise NotFoundError("gone")

    await delete_expected(expectations, KEY, pods("1"), delete)
    assert expectations.is_satisfied(KEY)


class Quota:
    """Lets so many through."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        if self.left == 0:
            raise ForbiddenError("exceeded quota")
        self.left -= 1


@pytest.mark.parametrize(
    ("count", "left", "calls", "succeeded", "skipped"),
    [
        (0, 5, 0, 0, 0),
        (1, 0, 1, 0, 0),
        (1000, 0, 1, 0, 999),
        (1000, 1, 3, 1, 997),
        # 1 + 2 + 4 pass; of 8, three do.
        (1000, 10, 15, 10, 985),
        (10, 100, 10, 10, 0),
    ],
)
async def test_batch_with_a_failure_is_the_last(
    count: int, left: int, calls: int, succeeded: int, skipped: int
) -> None:
    quota = Quota(left)
    result = await slow_start(count, quota)
    assert (quota.calls, result.succeeded, result.skipped) == (calls, succeeded, skipped)
    assert len(result.errors) == calls - succeeded


async def test_first_error_can_be_raised() -> None:
    with pytest.raises(ForbiddenError, match="exceeded quota"):
        (await slow_start(3, Quota(0))).raise_error()
    (await slow_start(3, Quota(3))).raise_error()


async def test_first_batch_may_be_larger() -> None:
    quota = Quota(0)
    await slow_start(100, quota, initial_batch=10)
    assert quota.calls == 10


async def test_who_is_cancelled_leaves_nothing_running() -> None:
    running = 0

    async def act() -> None:
        nonlocal running
        running += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            running -= 1

    async with asyncio.TaskGroup() as group:
        task = group.create_task(slow_start(5, act, initial_batch=5))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert running == 5
        task.cancel()
    assert task.cancelled()
    assert running == 0


async def test_of_a_large_batch_nothing_more_is_begun_after_a_failure() -> None:
    calls = 0

    async def act() -> None:
        nonlocal calls
        calls += 1
        number = calls
        await asyncio.sleep(0)
        if number == 100:
            raise ValueError("no more")

    made = await slow_start(500, act, initial_batch=500)
    assert calls < 100 + 64
    assert (made.succeeded, made.skipped) == (calls - 1, 500 - calls)
    assert len(made.errors) == 1
