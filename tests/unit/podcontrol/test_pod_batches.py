"""Several pods at once: what is expected is what was asked for and did not fail."""

from __future__ import annotations

import msgspec
import pytest

from podlife.errors import ConflictError, NotFoundError
from podlife.podcontrol import OwnedPod, UidTrackedExpectations, create_expected, delete_expected

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
    assert expectations.uids(KEY) == {"1", "3"}


async def test_a_pod_that_is_gone_already_is_no_failure_and_not_expected() -> None:
    expectations = UidTrackedExpectations()

    async def delete(pod: OwnedPod) -> None:
        raise NotFoundError("gone")

    await delete_expected(expectations, KEY, pods("1"), delete)
    assert expectations.is_satisfied(KEY)
