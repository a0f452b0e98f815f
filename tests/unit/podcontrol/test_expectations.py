from __future__ import annotations

import asyncio

from podlife.podcontrol import Expectations, UidTrackedExpectations
from podlife.testing import virtual_time

KEY = ("default", "web")


def test_creations_are_counted_beside_tracked_deletions() -> None:
    tracked = UidTrackedExpectations(seconds=lambda: 0.0)
    tracked.expect_creations(KEY, 3)
    tracked.observe_creation(KEY)
    # A pod of before that goes only now is not what is waited for.
    tracked.observe_deletion(KEY, "old")
    assert not tracked.is_satisfied(KEY)
    tracked.add(KEY, creations=-2)
    assert tracked.is_satisfied(KEY)


@virtual_time
async def test_time_is_the_event_loops_unless_another_is_given() -> None:
    expectations = Expectations(timeout_seconds=10)
    expectations.expect_creations(KEY, 1)
    await asyncio.sleep(10)
    assert not expectations.is_satisfied(KEY)
    await asyncio.sleep(0.1)
    assert expectations.is_satisfied(KEY)


def test_owner_that_is_gone_leaves_nothing_expected_to_its_successor() -> None:
    expectations = Expectations(seconds=lambda: 0.0)
    expectations.expect_creations(KEY, 1)
    expectations.forget(KEY)
    expectations.forget(KEY)
    assert expectations.is_satisfied(KEY)
    assert expectations.get(KEY) is None


def test_pods_to_come_and_pods_to_go_may_be_expected_at_once() -> None:
    tracked = UidTrackedExpectations(seconds=lambda: 0.0)
    tracked.expect(KEY, creations=1, deletions=["a", "b"])
    tracked.observe_deletion(KEY, "a")
    # It is seen twice, as it begins to go and when it is gone.
    tracked.observe_deletion(KEY, "a")
    tracked.observe_creation(KEY)
    assert not tracked.is_satisfied(KEY)
    tracked.observe_deletion(KEY, "b")
    assert tracked.is_satisfied(KEY)
