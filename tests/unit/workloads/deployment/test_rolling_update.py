from __future__ import annotations

import pytest

from podlife.workloads.deployment.decision import new_size, roll
from tests.unit.workloads.deployment.objects import deployment, replica_set, rollout, sizes


@pytest.mark.parametrize(
    ("replicas", "surge", "new", "old", "expected"),
    [
        # As far as there is room.
        (10, 0, 0, 10, 0),
        (10, 2, 0, 10, 2),
        (10, 2, 5, 0, 10),
        (10, 2, 10, 2, 10),
        (10, 2, 3, 9, 3),
        (10, 2, 0, 0, 10),
        # There may be less of them than there are.
        (2, 2, 8, 0, 2),
        (0, "25%", 0, 0, 0),
    ],
)
def test_new_one_grows_into_the_room_there_is(
    replicas: int, surge: int | str, new: int, old: int, expected: int
) -> None:
    known = replica_set("new", new), replica_set("old", old)
    assert new_size(rollout(deployment(replicas, surge=surge, unavailable=1), *known)) == expected


def test_first_one_is_created_at_its_size() -> None:
    step = roll(rollout(deployment(10, surge=3), None, replica_set("old", 9)))
    assert step is not None
    assert (step.create, step.scale) == (4, ())


@pytest.mark.parametrize(
    ("unavailable", "old", "old_available", "new", "new_available", "expected"),
    [
        # Where nothing may be missing nor too many, one may be missing after all.
        (0, 10, 10, 0, 0, {"old": 9}),
        (0, 10, 10, 1, 0, {}),
        (0, 10, 10, 1, 1, {"old": 9}),
        (2, 10, 10, 0, 0, {"old": 8}),
        # Pods that nobody has use of go first: they are not missed.
        (2, 10, 8, 0, 0, {"old": 8}),
        (2, 10, 0, 0, 0, {"old": 8}),
        # New ones that do not become available cost no old ones.
        (2, 8, 8, 2, 0, {}),
        (2, 8, 8, 2, 2, {"old": 6}),
        (2, 8, 7, 5, 0, {}),
        (2, 0, 0, 10, 0, {}),
        # It was scaled down before, and still counts those it has given up.
        (2, 8, 10, 3, 3, {"old": 5}),
    ],
)
def test_old_ones_shrink_as_far_as_enough_stay_available(
    unavailable: int, old: int, old_available: int, new: int, new_available: int, expected: dict[str, int]
) -> None:
    # So large a surge that the new one has no wish to grow first.
    made = deployment(10, surge=max(0, old + new - 10), unavailable=unavailable)
    known = (
        replica_set("new", new, available=new_available),
        replica_set("old", old, available=old_available, age_seconds=5),
    )
    step = roll(rollout(made, *known))
    assert {name: size for name, size in sizes(step).items() if name == "old"} == expected


def test_unhealthy_pods_of_all_old_ones_go_before_healthy_ones_and_the_oldest_first() -> None:
    made = deployment(10, surge=3, unavailable=2)
    new = replica_set("new", 3, available=3)
    oldest = replica_set("oldest", 4, available=4, age_seconds=20)
    middle = replica_set("middle", 6, available=3, age_seconds=10)
    step = roll(rollout(made, new, oldest, middle))
    # Thirteen are wanted, eight must be available: three unhealthy ones go, and two of the ten that are healthy.
    assert sizes(step) == {"middle": 3, "oldest": 2}


def test_rollout_that_is_over_has_no_step() -> None:
    assert roll(rollout(deployment(3, surge=1), replica_set("new", 3), replica_set("old", 0))) is None
